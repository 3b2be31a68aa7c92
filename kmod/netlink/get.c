// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers and dumps. A dump takes one row at a time. One of accounts is marked as
 * interrupted if what one of them held became another's meanwhile: it may be in neither,
 * or in both. Whoever comes or goes otherwise interrupts nobody.
 */
#include <linux/cgroup.h>
#include <linux/sched.h>

#include <umacct.h>

#include "compat.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/lock.h"
#include "netlink/get.h"
#include "netlink/message.h"
#include "netlink/reader.h"

static int put_status(struct sk_buff *skb, struct genl_info *info, const struct reader *reader)
{
	void *hdr = genlmsg_put_reply(skb, info, &message_family, 0, UMACCT_CMD_STATUS_GET);

	if (!hdr || nla_put_string(skb, UMACCT_A_STATUS_MODULE_VERSION, UMACCT_VERSION) ||
	    message_put_totals(skb, reader) || message_put_driver(skb, reader))
		return -EMSGSIZE;
	genlmsg_end(skb, hdr);
	return 0;
}

int get_status(struct sk_buff *request, struct genl_info *info)
{
	size_t size = MESSAGE_SIZE;
	struct reader reader;
	struct sk_buff *skb;
	int err;

	reader_init(&reader, request);
	/* It is longer if many hooks have a reason. */
	for (;; size *= 2) {
		skb = genlmsg_new(size, GFP_KERNEL);
		if (!skb)
			return -ENOMEM;
		err = put_status(skb, info, &reader);
		if (!err)
			return genlmsg_reply(skb, info);
		nlmsg_free(skb);
		if (size > MESSAGE_SIZE)
			return err;
	}
}

/*
 * There is no such account. Whoever may not see all is told so only of cgroups in its
 * own subtree: it would learn which others have memory.
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

int get_account(struct sk_buff *request, struct genl_info *info)
{
	struct account *account;
	struct reader *reader;
	struct sk_buff *skb;
	int err = -EMSGSIZE;
	void *hdr;

	if (GENL_REQ_ATTR_CHECK(info, UMACCT_A_ACCOUNT_ID)) {
		NL_SET_ERR_MSG(info->extack, "an account id is needed");
		return -EINVAL;
	}
	ledger_refresh();
	reader = reader_alloc(request);
	skb = genlmsg_new(MESSAGE_SIZE, GFP_KERNEL);
	if (!reader || !skb) {
		err = -ENOMEM;
		goto err;
	}
	hdr = genlmsg_put_reply(skb, info, &message_family, 0, UMACCT_CMD_ACCOUNT_GET);
	if (!hdr)
		goto err;
	raw_spin_lock_irq(&ledger_lock);
	account = account_find_locked(nla_get_u64(info->attrs[UMACCT_A_ACCOUNT_ID]));
	if (account)
		account_update_locked(account);
	if (!account)
		err = -ENOENT;
	else if (!reader_may_see(reader, account))
		err = -EPERM;
	else
		err = message_put_account(skb, reader, account);
	raw_spin_unlock_irq(&ledger_lock);
	if (err == -ENOENT)
		err = nothing_there(reader, nla_get_u64(info->attrs[UMACCT_A_ACCOUNT_ID]));
	if (err == -ENOENT) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[UMACCT_A_ACCOUNT_ID],
				    "this cgroup never held driver memory and has no limit");
		goto err;
	} else if (err == -EPERM) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[UMACCT_A_ACCOUNT_ID],
				    "not in your cgroup's subtree");
		goto err;
	} else if (err) {
		goto err;
	}
	genlmsg_end(skb, hdr);
	reader_free(reader);
	return genlmsg_reply(skb, info);
err:
	nlmsg_free(skb);
	reader_free(reader);
	return err;
}

static struct reader *dump_reader(struct netlink_callback *cb)
{
	return *(struct reader **)cb->ctx;
}

static int dump_start(struct netlink_callback *cb, int subtree_attr)
{
	struct nlattr *subtree = umacct_dump_attrs(cb)[subtree_attr];
	struct reader *reader = reader_alloc(cb->skb);

	if (!reader)
		return -ENOMEM;
	if (subtree)
		reader->subtree = nla_get_u64(subtree);
	*(struct reader **)cb->ctx = reader;
	ledger_refresh();
	return 0;
}

int get_account_dump_start(struct netlink_callback *cb)
{
	return dump_start(cb, UMACCT_A_ACCOUNT_ID);
}

int get_client_dump_start(struct netlink_callback *cb)
{
	return dump_start(cb, UMACCT_A_CLIENT_ACCOUNT_ID);
}

int get_dump_done(struct netlink_callback *cb)
{
	reader_free(dump_reader(cb));
	return 0;
}

static void *dump_row(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &message_family,
			   NLM_F_MULTI, cmd);
}

/*
 * Returns false if the row didn't fit: the next part of the dump begins with it. One that is
 * cancelled would take the mark with it.
 */
static bool dump_row_end(struct sk_buff *skb, struct netlink_callback *cb, void *hdr, int err)
{
	if (err) {
		genlmsg_cancel(skb, hdr);
		return false;
	}
	genl_dump_check_consistent(cb, hdr);
	genlmsg_end(skb, hdr);
	return true;
}

/*
 * One row under the lock at a time. Both return 1 if there was a row, whether or not
 * the reader may see it, 0 if there is none left, and -EMSGSIZE if it doesn't fit.
 */
static int dump_account(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct reader *reader = dump_reader(cb);
	struct account *account;
	int ret = 1;
	void *hdr;

	raw_spin_lock_irq(&ledger_lock);
	/* The message that ends the dump is looked at, too. */
	cb->seq = account_generation;
	account = account_after_locked(reader->cursor);
	if (!account) {
		ret = 0;
	} else if (reader_asks_for(reader, account)) {
		account_update_locked(account);
		hdr = dump_row(skb, cb, UMACCT_CMD_ACCOUNT_GET);
		if (!hdr || !dump_row_end(skb, cb, hdr, message_put_account(skb, reader, account)))
			ret = -EMSGSIZE;
	}
	if (ret > 0)
		reader->cursor = account->row.seq;
	raw_spin_unlock_irq(&ledger_lock);
	return ret;
}

static int dump_client(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct reader *reader = dump_reader(cb);
	struct account *account;
	struct client *client;
	int ret = 1;
	void *hdr;

	raw_spin_lock_irq(&ledger_lock);
	client = client_after_locked(reader->cursor);
	account = client ? account_nearest_online(client->account) : NULL;
	if (!client) {
		ret = 0;
	} else if (!client_is_over(client) && reader_asks_for(reader, account)) {
		hdr = dump_row(skb, cb, UMACCT_CMD_CLIENT_GET);
		if (!hdr || !dump_row_end(skb, cb, hdr,
					  message_put_client(skb, reader, client, account)))
			ret = -EMSGSIZE;
	}
	if (ret > 0)
		reader->cursor = client->row.seq;
	raw_spin_unlock_irq(&ledger_lock);
	return ret;
}

/* So many rows are looked at before somebody else may run. */
#define ROWS_AT_A_TIME	128

static int dump_rows(struct sk_buff *skb, struct netlink_callback *cb,
		     int (*dump_one)(struct sk_buff *skb, struct netlink_callback *cb))
{
	unsigned int rows = 0;

	/* Whoever yields for each row is overtaken by changes, and has to begin again. */
	while (dump_one(skb, cb) > 0)
		if (!(++rows % ROWS_AT_A_TIME))
			cond_resched();
	return skb->len;
}

int get_account_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_rows(skb, cb, dump_account);
}

int get_client_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_rows(skb, cb, dump_client);
}
