// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family; include/umacct.h describes it.
 *
 * Who may see what is decided once, at the start of a request, and carried
 * through a dump in struct reader: later parts of a dump may run in another
 * task. A dump takes one row at a time; it is marked as interrupted if some came
 * or went meanwhile.
 */
#include <linux/cgroup.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "compat.h"
#include "hooks/charge.h"
#include "hooks/driver.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "memcg.h"
#include "netlink/netlink.h"
#include "hooks/table.h"
#include "hooks/throttle.h"
#include "hooks/view.h"

/**
 * struct reader - on whose behalf a request is answered
 * @all: sees every account
 * @own: otherwise, sees the subtree of this cgroup
 * @subtree: asked for this subtree only, or 0
 * @cursor: dumps: number of the last row that was looked at
 * @pids: pid namespace that pids are told in; referenced
 * @prefix: path of the root of the cgroup namespace that paths are told in
 */
struct reader {
	bool all;
	u64 own;
	u64 subtree;
	u64 cursor;
	struct pid_namespace *pids;
	char prefix[PATH_MAX];
};

/* Room for the largest: a status with every hook's reason, an event with two paths. */
#define MESSAGE_SIZE	SZ_8K

static struct genl_family family;

static struct reader *reader_alloc(const struct sk_buff *request)
{
	struct reader *reader = kzalloc(sizeof(*reader), GFP_KERNEL);
	int len;

	if (!reader)
		return NULL;
	reader->all = netlink_capable(request, CAP_SYS_ADMIN);
	reader->pids = get_pid_ns(task_active_pid_ns(current));
	rcu_read_lock();
	reader->own = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
	len = cgroup_path(current->nsproxy->cgroup_ns->root_cset->dfl_cgrp,
			  reader->prefix, sizeof(reader->prefix));
	if (len < 0 || len >= sizeof(reader->prefix) || !strcmp(reader->prefix, "/"))
		reader->prefix[0] = '\0';
	return reader;
}

static void reader_free(struct reader *reader)
{
	if (!reader)
		return;
	put_pid_ns(reader->pids);
	kfree(reader);
}

static bool is_within(const struct account *account, u64 id)
{
	for (; account; account = account->parent)
		if (account->id == id)
			return true;
	return false;
}

static bool may_see(const struct reader *reader, const struct account *account)
{
	return reader->all || is_within(account, reader->own);
}

static bool is_asked_for(const struct reader *reader, const struct account *account)
{
	return may_see(reader, account) &&
	       (!reader->subtree || is_within(account, reader->subtree));
}

static const char *path_for(const struct reader *reader, const struct account *account)
{
	size_t len = strlen(reader->prefix);

	if (!len || strncmp(account->path, reader->prefix, len) ||
	    (account->path[len] && account->path[len] != '/'))
		return account->path;
	return account->path[len] ? account->path + len : "/";
}

struct u64_attr {
	int type;
	u64 value;
};

static int put_u64s(struct sk_buff *skb, const struct u64_attr *attrs, size_t nr, int pad)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (nla_put_u64_64bit(skb, attrs[i].type, attrs[i].value, pad))
			return -EMSGSIZE;
	return 0;
}

/* Saves who lists many accounts from opening two files for each. */
static int put_memory(struct sk_buff *skb, const struct account *a)
{
	struct memcg_figures figures;

	if (!a->cgrp || !memcg_read(a->cgrp, &figures))
		return 0;
	if (nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_MEMORY_CURRENT, figures.current_bytes,
			      UMACCT_A_ACCOUNT_PAD) ||
	    nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_MEMORY_MAX, figures.max_bytes,
			      UMACCT_A_ACCOUNT_PAD))
		return -EMSGSIZE;
	return 0;
}

static int put_account(struct sk_buff *skb, const struct reader *reader,
		       const struct account *a)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_ACCOUNT_ID, a->id },
		{ UMACCT_A_ACCOUNT_USAGE, a->usage },
		{ UMACCT_A_ACCOUNT_OWN, a->own },
		{ UMACCT_A_ACCOUNT_PEAK, a->peak },
		{ UMACCT_A_ACCOUNT_CHARGED, a->charged },
		{ UMACCT_A_ACCOUNT_MANAGED, a->managed },
		{ UMACCT_A_ACCOUNT_ALLOCS, a->allocs },
		{ UMACCT_A_ACCOUNT_FREES, a->frees },
		{ UMACCT_A_ACCOUNT_FAILURES, a->failures },
		{ UMACCT_A_ACCOUNT_REFUSALS, a->refusals },
		{ UMACCT_A_ACCOUNT_SOFT, a->settings.soft },
		{ UMACCT_A_ACCOUNT_HARD, a->settings.hard },
		{ UMACCT_A_ACCOUNT_THROTTLE, a->settings.throttle_ns },
		{ UMACCT_A_ACCOUNT_EFFECTIVE, a->effective },
		{ UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT, a->soft_count },
		{ UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT, a->hard_count },
		{ UMACCT_A_ACCOUNT_RESERVE_COUNT, a->reserve_count },
		{ UMACCT_A_ACCOUNT_THROTTLED, a->throttled_ns },
	};

	if (put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_ACCOUNT_PAD) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_LEVEL, a->level) ||
	    nla_put_string(skb, UMACCT_A_ACCOUNT_PATH, path_for(reader, a)) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_CLIENTS, a->clients) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_VIEW, a->settings.view) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_CHARGE, a->settings.charge) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE,
			a->charge_effective ? UMACCT_CHARGE_ON : UMACCT_CHARGE_OFF))
		return -EMSGSIZE;
	if (a->parent &&
	    nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_PARENT_ID, a->parent->id,
			      UMACCT_A_ACCOUNT_PAD))
		return -EMSGSIZE;
	if (a->effective != UMACCT_UNLIMITED &&
	    nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_EFFECTIVE_ID, a->effective_id,
			      UMACCT_A_ACCOUNT_PAD))
		return -EMSGSIZE;
	return put_memory(skb, a);
}

static int put_client(struct sk_buff *skb, const struct reader *reader,
		      const struct client *c, const struct account *account)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_CLIENT_START_TIME, c->start_time },
		{ UMACCT_A_CLIENT_ACCOUNT_ID, account->id },
		{ UMACCT_A_CLIENT_USAGE, c->usage },
		{ UMACCT_A_CLIENT_PEAK, c->peak },
		{ UMACCT_A_CLIENT_CHARGED, c->charged },
		{ UMACCT_A_CLIENT_MANAGED, c->managed },
		{ UMACCT_A_CLIENT_ALLOCS, c->allocs },
		{ UMACCT_A_CLIENT_FREES, c->frees },
	};

	if (put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_CLIENT_PAD) ||
	    nla_put_u32(skb, UMACCT_A_CLIENT_PID, pid_nr_ns(c->pid, reader->pids)) ||
	    nla_put_string(skb, UMACCT_A_CLIENT_COMM, c->comm) ||
	    nla_put_string(skb, UMACCT_A_CLIENT_PATH, path_for(reader, account)))
		return -EMSGSIZE;
	if (client_exited(c) && nla_put_flag(skb, UMACCT_A_CLIENT_EXITED))
		return -EMSGSIZE;
	return 0;
}

static int put_hook(struct sk_buff *skb, const struct hook *hook)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_HOOK_CALLS, probe_calls(&hook->probe) },
		{ UMACCT_A_HOOK_MISSED, probe_missed(&hook->probe) },
	};
	struct nlattr *nest = nla_nest_start(skb, UMACCT_A_STATUS_HOOK);

	if (!nest ||
	    nla_put_string(skb, UMACCT_A_HOOK_NAME, hook->name) ||
	    nla_put_string(skb, UMACCT_A_HOOK_SYMBOL, hook->probe.symbol) ||
	    nla_put_u32(skb, UMACCT_A_HOOK_STATE, hook->state) ||
	    (hook->required && nla_put_flag(skb, UMACCT_A_HOOK_REQUIRED)) ||
	    (hook->reason[0] && nla_put_string(skb, UMACCT_A_HOOK_REASON, hook->reason)) ||
	    put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_HOOK_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Context: under hook_lock(). */
static u32 status_flags(void)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);
	const char *why;
	u32 flags = 0;

	if (memcg_on_v2())
		flags |= UMACCT_STATUS_MEMCG_V2;
	if (umacct_kmem_online())
		flags |= UMACCT_STATUS_KMEM;
	if (profile->native_charge)
		flags |= UMACCT_STATUS_NATIVE_CHARGE;
	if (profile->page_pools)
		flags |= UMACCT_STATUS_PAGE_POOLS;
	if (charge_possible(&why))
		flags |= UMACCT_STATUS_CHARGE_READY;
	if (view_possible(&why))
		flags |= UMACCT_STATUS_VIEW_READY;
	if (cgrp_dfl_root.cgrp.nr_descendants)
		flags |= UMACCT_STATUS_CGROUP_V2;
	if (probe_selftest())
		flags |= UMACCT_STATUS_SELFTEST;
	return flags;
}

static int put_totals(struct sk_buff *skb)
{
	struct ledger_totals totals;

	ledger_read_totals(&totals);
	{
		const struct u64_attr numbers[] = {
			{ UMACCT_A_STATUS_USAGE, totals.usage },
			{ UMACCT_A_STATUS_CHARGED, totals.charged },
			{ UMACCT_A_STATUS_DRIVER_USAGE, totals.records.driver_usage },
			{ UMACCT_A_STATUS_DRIVER_PEAK, totals.records.driver_peak },
			{ UMACCT_A_STATUS_MANAGED, totals.managed },
			{ UMACCT_A_STATUS_UNTRACKED, totals.records.untracked },
			{ UMACCT_A_STATUS_UNTRACKED_COUNT, totals.records.untracked_count },
			{ UMACCT_A_STATUS_STALE_COUNT, totals.records.stale_count },
			{ UMACCT_A_STATUS_RESERVE, totals.settings.reserve },
			{ UMACCT_A_STATUS_RESERVE_COUNT, totals.reserve_count },
			{ UMACCT_A_STATUS_EVENTS_SENT, totals.events.posted },
			{ UMACCT_A_STATUS_EVENTS_LOST, totals.events.lost },
		};

		if (put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_STATUS_PAD))
			return -EMSGSIZE;
	}
	if (nla_put_u32(skb, UMACCT_A_STATUS_ACCOUNTS, totals.accounts) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_CLIENTS, totals.clients) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_RECORDS, totals.records.nr) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_CHARGE_DEFAULT,
			totals.settings.charge_default ? UMACCT_CHARGE_ON : UMACCT_CHARGE_OFF))
		return -EMSGSIZE;
	return 0;
}

static int put_driver(struct sk_buff *skb)
{
	const struct driver_profile *profile, *uvm;
	struct hook *hook;
	int err = -EMSGSIZE;

	hook_lock();
	profile = driver_profile(HOOK_NVIDIA);
	uvm = driver_profile(HOOK_UVM);
	if (nla_put_u32(skb, UMACCT_A_STATUS_DRIVER_STATE, profile->state) ||
	    (profile->version[0] &&
	     nla_put_string(skb, UMACCT_A_STATUS_DRIVER_VERSION, profile->version)) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_UVM_STATE, uvm->state) ||
	    (profile->reason[0] &&
	     nla_put_string(skb, UMACCT_A_STATUS_REASON, profile->reason)) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_FLAGS, status_flags()))
		goto out;
	for_each_hook(hook)
		if (hook_applies(hook) && put_hook(skb, hook))
			goto out;
	err = 0;
out:
	hook_unlock();
	return err;
}

static int status_get_doit(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *skb = genlmsg_new(MESSAGE_SIZE, GFP_KERNEL);
	void *hdr;

	if (!skb)
		return -ENOMEM;
	ledger_refresh();
	hdr = genlmsg_put_reply(skb, info, &family, 0, UMACCT_CMD_STATUS_GET);
	if (!hdr || nla_put_string(skb, UMACCT_A_STATUS_MODULE_VERSION, UMACCT_VERSION) ||
	    put_totals(skb) || put_driver(skb)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

static int account_get_doit(struct sk_buff *request, struct genl_info *info)
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
	hdr = genlmsg_put_reply(skb, info, &family, 0, UMACCT_CMD_ACCOUNT_GET);
	if (!hdr)
		goto err;
	raw_spin_lock(&ledger_lock);
	account = account_find_locked(nla_get_u64(info->attrs[UMACCT_A_ACCOUNT_ID]));
	if (account)
		account_update_locked(account);
	if (!account)
		err = -ENOENT;
	else if (!may_see(reader, account))
		err = -EPERM;
	else
		err = put_account(skb, reader, account);
	raw_spin_unlock(&ledger_lock);
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

static int account_dump_start(struct netlink_callback *cb)
{
	return dump_start(cb, UMACCT_A_ACCOUNT_ID);
}

static int client_dump_start(struct netlink_callback *cb)
{
	return dump_start(cb, UMACCT_A_CLIENT_ACCOUNT_ID);
}

static int dump_done(struct netlink_callback *cb)
{
	reader_free(dump_reader(cb));
	return 0;
}

static void *dump_row(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				NLM_F_MULTI, cmd);

	cb->seq = row_generation();
	if (hdr)
		genl_dump_check_consistent(cb, hdr);
	return hdr;
}

/* Returns false if the row didn't fit: the next part of the dump begins with it. */
static bool dump_row_end(struct sk_buff *skb, void *hdr, int err)
{
	if (err) {
		genlmsg_cancel(skb, hdr);
		return false;
	}
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

	raw_spin_lock(&ledger_lock);
	account = account_after_locked(reader->cursor);
	if (!account) {
		ret = 0;
	} else if (is_asked_for(reader, account)) {
		account_update_locked(account);
		hdr = dump_row(skb, cb, UMACCT_CMD_ACCOUNT_GET);
		if (!hdr || !dump_row_end(skb, hdr, put_account(skb, reader, account)))
			ret = -EMSGSIZE;
	}
	if (ret > 0)
		reader->cursor = account->row.seq;
	raw_spin_unlock(&ledger_lock);
	return ret;
}

static int dump_client(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct reader *reader = dump_reader(cb);
	struct account *account;
	struct client *client;
	int ret = 1;
	void *hdr;

	raw_spin_lock(&ledger_lock);
	client = client_after_locked(reader->cursor);
	account = client ? account_heir(client->account) : NULL;
	if (!client) {
		ret = 0;
	} else if (is_asked_for(reader, account)) {
		hdr = dump_row(skb, cb, UMACCT_CMD_CLIENT_GET);
		if (!hdr || !dump_row_end(skb, hdr, put_client(skb, reader, client, account)))
			ret = -EMSGSIZE;
	}
	if (ret > 0)
		reader->cursor = client->row.seq;
	raw_spin_unlock(&ledger_lock);
	return ret;
}

static int dump_rows(struct sk_buff *skb, struct netlink_callback *cb,
		     int (*dump_one)(struct sk_buff *skb, struct netlink_callback *cb))
{
	while (dump_one(skb, cb) > 0)
		cond_resched();
	cb->seq = row_generation();
	return skb->len;
}

static int account_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_rows(skb, cb, dump_account);
}

static int client_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_rows(skb, cb, dump_client);
}

/* NL_SET_ERR_MSG() wants its text as a literal; ours are constants too. */
static void refuse(struct genl_info *info, const struct nlattr *attr, const char *why)
{
	if (!info->extack)
		return;
	NL_SET_BAD_ATTR(info->extack, attr);
	info->extack->_msg = why;
}

static int refuse_unprivileged(struct sk_buff *request, struct genl_info *info)
{
	if (netlink_capable(request, CAP_SYS_ADMIN))
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "changing limits takes CAP_SYS_ADMIN in the initial user namespace");
	return -EPERM;
}

/* Whether a feature can be switched on; if not, why is the request's answer. */
static bool is_possible(struct genl_info *info, const struct nlattr *attr,
			bool (*feature)(const char **why))
{
	const char *why = NULL;
	bool possible;

	hook_lock();
	possible = feature(&why);
	hook_unlock();
	if (!possible)
		refuse(info, attr, why);
	return possible;
}

static int parse_change(struct genl_info *info, struct limit_change *change)
{
	struct nlattr **attrs = info->attrs, *attr;

	memset(change, 0, sizeof(*change));
	attr = attrs[UMACCT_A_ACCOUNT_SOFT];
	if (attr) {
		change->mask |= LIMIT_SOFT;
		change->to.soft = nla_get_u64(attr);
	}
	attr = attrs[UMACCT_A_ACCOUNT_HARD];
	if (attr) {
		change->mask |= LIMIT_HARD;
		change->to.hard = nla_get_u64(attr);
	}
	attr = attrs[UMACCT_A_ACCOUNT_THROTTLE];
	if (attr) {
		if (nla_get_u64(attr) && !is_possible(info, attr, throttle_possible))
			return -EOPNOTSUPP;
		change->mask |= LIMIT_THROTTLE;
		change->to.throttle_ns = nla_get_u64(attr);
		if (change->to.throttle_ns > LIMIT_THROTTLE_MAX_NS) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr,
					    "a throttle is at most two seconds");
			return -ERANGE;
		}
	}
	attr = attrs[UMACCT_A_ACCOUNT_VIEW];
	if (attr) {
		change->mask |= LIMIT_VIEW;
		change->to.view = nla_get_u32(attr);
		if (change->to.view && !is_possible(info, attr, view_possible))
			return -EOPNOTSUPP;
	}
	attr = attrs[UMACCT_A_ACCOUNT_CHARGE];
	if (attr) {
		change->mask |= LIMIT_CHARGE;
		change->to.charge = nla_get_u32(attr);
		if (change->to.charge == UMACCT_CHARGE_ON &&
		    !is_possible(info, attr, charge_possible))
			return -EOPNOTSUPP;
	}
	if (!change->mask) {
		NL_SET_ERR_MSG(info->extack, "nothing to change");
		return -EINVAL;
	}
	return 0;
}

static int account_set_doit(struct sk_buff *request, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct limit_change change;
	struct account *account;
	const char *why = NULL;
	int err;

	err = refuse_unprivileged(request, info);
	if (err)
		return err;
	if (GENL_REQ_ATTR_CHECK(info, UMACCT_A_ACCOUNT_ID)) {
		NL_SET_ERR_MSG(info->extack, "an account id is needed");
		return -EINVAL;
	}
	err = parse_change(info, &change);
	if (err)
		return err;
	account = account_open(nla_get_u64(attrs[UMACCT_A_ACCOUNT_ID]));
	if (IS_ERR(account)) {
		if (PTR_ERR(account) == -ENOENT)
			NL_SET_ERR_MSG_ATTR(info->extack, attrs[UMACCT_A_ACCOUNT_ID],
					    "no such cgroup");
		return PTR_ERR(account);
	}
	err = limit_set(account, &change, &why);
	if (err)
		refuse(info, attrs[UMACCT_A_ACCOUNT_SOFT] ?: attrs[UMACCT_A_ACCOUNT_HARD], why);
	account_put(account);
	if (err)
		return err;
	if (change.mask & (LIMIT_VIEW | LIMIT_THROTTLE | LIMIT_CHARGE))
		driver_rearm();
	return 0;
}

static int config_set_doit(struct sk_buff *request, struct genl_info *info)
{
	struct nlattr *reserve = info->attrs[UMACCT_A_STATUS_RESERVE];
	struct nlattr *charge = info->attrs[UMACCT_A_STATUS_CHARGE_DEFAULT];
	int err;

	err = refuse_unprivileged(request, info);
	if (err)
		return err;
	if (!reserve && !charge) {
		NL_SET_ERR_MSG(info->extack, "nothing to change");
		return -EINVAL;
	}
	if (reserve && nla_get_u64(reserve) > (u64)totalram_pages() << PAGE_SHIFT) {
		NL_SET_ERR_MSG_ATTR(info->extack, reserve,
				    "the reserve is more than the machine's memory");
		return -ERANGE;
	}
	if (charge && nla_get_u32(charge) == UMACCT_CHARGE_ON &&
	    !is_possible(info, charge, charge_possible))
		return -EOPNOTSUPP;
	if (reserve)
		settings_set_reserve(nla_get_u64(reserve));
	if (charge) {
		settings_set_charge_default(nla_get_u32(charge) == UMACCT_CHARGE_ON);
		driver_rearm();
	}
	return 0;
}

static const struct nla_policy account_get_policy[] = {
	[UMACCT_A_ACCOUNT_ID] = { .type = NLA_U64 },
};

static const struct nla_policy account_set_policy[] = {
	[UMACCT_A_ACCOUNT_ID] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_SOFT] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_HARD] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_THROTTLE] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_VIEW] = NLA_POLICY_MAX(NLA_U32, 1),
	[UMACCT_A_ACCOUNT_CHARGE] = NLA_POLICY_MAX(NLA_U32, UMACCT_CHARGE_ON),
};

static const struct nla_policy client_get_policy[] = {
	[UMACCT_A_CLIENT_ACCOUNT_ID] = { .type = NLA_U64 },
};

static const struct nla_policy config_set_policy[] = {
	[UMACCT_A_STATUS_RESERVE] = { .type = NLA_U64 },
	[UMACCT_A_STATUS_CHARGE_DEFAULT] =
		NLA_POLICY_RANGE(NLA_U32, UMACCT_CHARGE_OFF, UMACCT_CHARGE_ON),
};

static const struct genl_ops ops[] = {
	{
		.cmd = UMACCT_CMD_STATUS_GET,
		.doit = status_get_doit,
	},
	{
		.cmd = UMACCT_CMD_ACCOUNT_GET,
		.doit = account_get_doit,
		.start = account_dump_start,
		.dumpit = account_dumpit,
		.done = dump_done,
		.policy = account_get_policy,
		.maxattr = ARRAY_SIZE(account_get_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_ACCOUNT_SET,
		.doit = account_set_doit,
		.policy = account_set_policy,
		.maxattr = ARRAY_SIZE(account_set_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_CLIENT_GET,
		.start = client_dump_start,
		.dumpit = client_dumpit,
		.done = dump_done,
		.policy = client_get_policy,
		.maxattr = ARRAY_SIZE(client_get_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_CONFIG_SET,
		.doit = config_set_doit,
		.policy = config_set_policy,
		.maxattr = ARRAY_SIZE(config_set_policy) - 1,
	},
};

static const struct genl_multicast_group groups[] = {
	{ .name = UMACCT_MCGRP_EVENTS, .flags = UMACCT_MCAST_ADMIN },
};

static struct genl_family family __ro_after_init = {
	.name = UMACCT_FAMILY_NAME,
	.version = UMACCT_FAMILY_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.resv_start_op = UMACCT_CMD_STATUS_GET,
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

/**
 * netlink_send_event() - tell the listeners
 * @event: what happened
 *
 * Context: may sleep.
 */
void netlink_send_event(const struct event *event)
{
	const struct account *limit = event->limit_account;
	const struct u64_attr numbers[] = {
		{ UMACCT_A_EVENT_SEQ, event->seq },
		{ UMACCT_A_EVENT_TIME, event->time },
		{ UMACCT_A_EVENT_ACCOUNT_ID, event->account->id },
		{ UMACCT_A_EVENT_SIZE, event->size },
		{ UMACCT_A_EVENT_USAGE, event->usage },
		{ UMACCT_A_EVENT_LIMIT, event->limit },
	};
	struct sk_buff *skb;
	void *hdr;

	if (!genl_has_listeners(&family, &init_net, 0))
		return;
	skb = genlmsg_new(MESSAGE_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	hdr = genlmsg_put(skb, 0, 0, &family, 0, UMACCT_CMD_EVENT_NTF);
	if (!hdr || nla_put_u32(skb, UMACCT_A_EVENT_TYPE, event->type) ||
	    put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_EVENT_PAD) ||
	    nla_put_string(skb, UMACCT_A_EVENT_PATH, event->account->path) ||
	    nla_put_u32(skb, UMACCT_A_EVENT_PID, event->pid) ||
	    nla_put_string(skb, UMACCT_A_EVENT_COMM, event->comm))
		goto err;
	if (limit &&
	    (nla_put_u64_64bit(skb, UMACCT_A_EVENT_LIMIT_ID, limit->id, UMACCT_A_EVENT_PAD) ||
	     nla_put_string(skb, UMACCT_A_EVENT_LIMIT_PATH, limit->path)))
		goto err;
	genlmsg_end(skb, hdr);
	genlmsg_multicast(&family, skb, 0, 0, GFP_KERNEL);
	return;
err:
	nlmsg_free(skb);
}

/**
 * netlink_init() - offer the family
 *
 * Context: module initialisation.
 * Return: 0 or an error; -EEXIST if another copy of this module offers it.
 */
int netlink_init(void)
{
	int err = genl_register_family(&family);

	if (err == -EEXIST)
		pr_err("another module offers the netlink family \"%s\": is a second copy of this one loaded?\n",
		       family.name);
	return err;
}

/**
 * netlink_exit() - withdraw the family
 *
 * Context: module exit. On return nobody is inside a request.
 */
void netlink_exit(void)
{
	genl_unregister_family(&family);
}
