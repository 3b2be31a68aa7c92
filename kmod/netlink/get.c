// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers and dumps. A dump takes one row at a time. One of accounts is marked as
 * interrupted if what one of them held became another's meanwhile: it may be in neither,
 * or in both. What comes or goes otherwise interrupts no dump.
 */
#include <linux/cgroup.h>
#include <linux/sched.h>

#include <umacct.h>

#include "compat.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "netlink/message.h"
#include "netlink/reader.h"
#include "netlink/request.h"

static int put_status(struct sk_buff *skb, struct genl_info *info, const struct reader *reader)
{
	void *hdr = genlmsg_put_reply(skb, info, &umacct_message_family, 0, UMACCT_CMD_STATUS_GET);

	if (!hdr || nla_put_string(skb, UMACCT_A_STATUS_MODULE_VERSION, UMACCT_VERSION) ||
	    umacct_message_put_totals(skb, reader) || umacct_message_put_driver(skb, reader))
		return -EMSGSIZE;
	genlmsg_end(skb, hdr);
	return 0;
}

int umacct_nl_status_get_doit(struct sk_buff *request, struct genl_info *info)
{
	const size_t usual = umacct_message_status_size();
	struct reader reader;
	struct sk_buff *skb;
	size_t size;
	int err;

	umacct_reader_init(&reader, request);
	/* It is longer if many hooks have a reason. */
	for (size = usual;; size *= 2) {
		skb = genlmsg_new(size, GFP_KERNEL);
		if (!skb)
			return -ENOMEM;
		err = put_status(skb, info, &reader);
		if (!err)
			return genlmsg_reply(skb, info);
		nlmsg_free(skb);
		if (size > usual)
			return err;
	}
}

/*
 * There is no such account. Readers that may not see all get -EPERM for cgroups outside of their
 * subtree, so that -ENOENT does not reveal which others have memory.
 */
static int nothing_there(const struct reader *reader, u64 id)
{
	struct cgroup *cgrp, *own;
	int err = -EPERM;

	if (reader->all)
		return -ENOENT;
	cgrp = cgroup_get_from_id(id);
	if (IS_ERR(cgrp))
		return err;
	for (own = cgrp; reader->own && own; own = cgroup_parent(own))
		if (cgroup_id(own) == reader->own)
			err = -ENOENT;
	cgroup_put(cgrp);
	return err;
}

struct answer {
	struct sk_buff *skb;
	const struct reader *reader;
};

static int answer_account(const struct account *account, void *arg)
{
	const struct answer *answer = arg;

	if (!umacct_reader_may_see(answer->reader, account))
		return -EPERM;
	return umacct_message_put_account(answer->skb, answer->reader, account);
}

int umacct_nl_account_get_doit(struct sk_buff *request, struct genl_info *info)
{
	struct reader *reader;
	struct sk_buff *skb;
	int err = -EMSGSIZE;
	void *hdr;

	if (GENL_REQ_ATTR_CHECK(info, UMACCT_A_ACCOUNT_ID)) {
		NL_SET_ERR_MSG(info->extack, "an account id is needed");
		return -EINVAL;
	}
	reader = umacct_reader_alloc(request);
	skb = genlmsg_new(MESSAGE_SIZE, GFP_KERNEL);
	if (!reader || !skb) {
		err = -ENOMEM;
		goto err;
	}
	hdr = genlmsg_put_reply(skb, info, &umacct_message_family, 0, UMACCT_CMD_ACCOUNT_GET);
	if (!hdr)
		goto err;
	err = umacct_read_account(nla_get_u64(info->attrs[UMACCT_A_ACCOUNT_ID]), answer_account,
				  &(struct answer) { .skb = skb, .reader = reader });
	if (err == -ENOENT)
		err = nothing_there(reader, nla_get_u64(info->attrs[UMACCT_A_ACCOUNT_ID]));
	if (err == -ENOENT) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[UMACCT_A_ACCOUNT_ID],
				    "this cgroup never held driver memory and has no limit");
	} else if (err == -EPERM) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[UMACCT_A_ACCOUNT_ID],
				    "not in your cgroup's subtree");
	}
	if (err)
		goto err;
	genlmsg_end(skb, hdr);
	umacct_reader_free(reader);
	return genlmsg_reply(skb, info);
err:
	nlmsg_free(skb);
	umacct_reader_free(reader);
	return err;
}

static struct reader *dump_reader(struct netlink_callback *cb)
{
	return *(struct reader **)cb->ctx;
}

static int dump_start(struct netlink_callback *cb, int subtree_attr)
{
	struct nlattr *subtree = umacct_dump_attrs(cb)[subtree_attr];
	struct reader *reader = umacct_reader_alloc(cb->skb);

	if (!reader)
		return -ENOMEM;
	if (subtree)
		reader->subtree = nla_get_u64(subtree);
	*(struct reader **)cb->ctx = reader;
	return 0;
}

int umacct_nl_account_get_start(struct netlink_callback *cb)
{
	return dump_start(cb, UMACCT_A_ACCOUNT_ID);
}

int umacct_nl_client_get_start(struct netlink_callback *cb)
{
	int err = dump_start(cb, UMACCT_A_CLIENT_ACCOUNT_ID);

	if (!err)
		dump_reader(cb)->exiting = umacct_dump_attrs(cb)[UMACCT_A_CLIENT_EXITING];
	return err;
}

int umacct_nl_get_done(struct netlink_callback *cb)
{
	umacct_reader_free(dump_reader(cb));
	return 0;
}

struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
};

static void *dump_row(struct dump *dump, u8 cmd)
{
	return genlmsg_put(dump->skb, NETLINK_CB(dump->cb->skb).portid, dump->cb->nlh->nlmsg_seq,
			   &umacct_message_family, NLM_F_MULTI, cmd);
}

/*
 * Returns an error if the row didn't fit: the next part of the dump begins with it. A cancelled
 * message would lose NLM_F_DUMP_INTR.
 */
static int dump_row_end(struct dump *dump, void *hdr, int err)
{
	if (err) {
		genlmsg_cancel(dump->skb, hdr);
		return err;
	}
	genl_dump_check_consistent(dump->cb, hdr);
	genlmsg_end(dump->skb, hdr);
	return 0;
}

static int put_account_row(const struct account *account, void *arg)
{
	struct dump *dump = arg;
	const struct reader *reader = dump_reader(dump->cb);
	void *hdr;

	if (!umacct_reader_asks_for(reader, account))
		return 0;
	hdr = dump_row(dump, UMACCT_CMD_ACCOUNT_GET);
	if (!hdr)
		return -EMSGSIZE;
	return dump_row_end(dump, hdr, umacct_message_put_account(dump->skb, reader, account));
}

static int put_client_row(const struct client *client, const struct account *account, void *arg)
{
	struct dump *dump = arg;
	const struct reader *reader = dump_reader(dump->cb);
	void *hdr;

	if ((reader->exiting && !umacct_client_is_exiting(client)) ||
	    !umacct_reader_asks_for(reader, account))
		return 0;
	hdr = dump_row(dump, UMACCT_CMD_CLIENT_GET);
	if (!hdr)
		return -EMSGSIZE;
	return dump_row_end(dump, hdr,
			    umacct_message_put_client(dump->skb, reader, client, account));
}

/* Rows to look at before other tasks may run. */
#define ROWS_AT_A_TIME	128

/* Rescheduling after each row would make interrupted dumps the rule. */
static void after_row(unsigned int *rows)
{
	if (!(++*rows % ROWS_AT_A_TIME))
		cond_resched();
}

int umacct_nl_account_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	u64 *cursor = &dump_reader(cb)->cursor;
	unsigned int rows = 0;

	/* The generation of the message that ends the dump is looked at, too. */
	while (umacct_read_next_account(cursor, &cb->seq, put_account_row,
					&(struct dump) { skb, cb }) > 0)
		after_row(&rows);
	return skb->len;
}

int umacct_nl_client_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	u64 *cursor = &dump_reader(cb)->cursor;
	unsigned int rows = 0;

	while (umacct_read_next_client(cursor, put_client_row, &(struct dump) { skb, cb }) > 0)
		after_row(&rows);
	return skb->len;
}
