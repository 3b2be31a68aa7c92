// SPDX-License-Identifier: GPL-2.0-only
/*
 * The family's messages: what the ledger and the hooks know as attributes, which
 * include/umacct.h describes.
 */
#include <linux/cgroup.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "compat.h"
#include "hooks/driver.h"
#include "hooks/hook.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/settings.h"
#include "memcg.h"
#include "netlink/figures.h"
#include "netlink/message.h"
#include "netlink/reader.h"
#include "pools.h"

/* family.c says what it answers, and registers it. */
struct genl_family umacct_message_family __ro_after_init = {
	.name = UMACCT_FAMILY_NAME,
	.version = UMACCT_FAMILY_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,
	.resv_start_op = UMACCT_CMD_STATUS_GET,
};

/* A reader that lists many accounts need not open two files for each. */
static int put_memory(struct sk_buff *skb, const struct account *a)
{
	struct memcg_figures figures;

	if (!a->cgrp || !umacct_memcg_read(a->cgrp, &figures))
		return 0;
	if (nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_MEMORY_CURRENT, figures.current_bytes,
			      UMACCT_A_ACCOUNT_PAD) ||
	    nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_MEMORY_MAX, figures.max_bytes,
			      UMACCT_A_ACCOUNT_PAD))
		return -EMSGSIZE;
	return 0;
}

/*
 * Puts the attributes of an account, for which account_update_locked() was called. Under
 * umacct_ledger_lock. Like all that put something, it returns 0, or -EMSGSIZE if it doesn't fit.
 */
int umacct_message_put_account(struct sk_buff *skb, const struct reader *reader,
			       const struct account *a)
{
	struct held held;

	umacct_account_held_locked(a, &held);
	if (put_account_figures(skb, a, &held) ||
	    nla_put_string(skb, UMACCT_A_ACCOUNT_PATH, umacct_reader_path(reader, a)))
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

/* Puts the attributes of a client that counts for @account. Under umacct_ledger_lock. */
int umacct_message_put_client(struct sk_buff *skb, const struct reader *reader,
			      const struct client *c, const struct account *account)
{
	struct held held;

	held_read(&held, c->booked, c->booked_charged, &c->managed);
	if (put_client_figures(skb, c, &held, account) ||
	    nla_put_u32(skb, UMACCT_A_CLIENT_PID, pid_nr_ns(c->pid, reader->pids)) ||
	    nla_put_string(skb, UMACCT_A_CLIENT_COMM, c->comm) ||
	    nla_put_string(skb, UMACCT_A_CLIENT_PATH, umacct_reader_path(reader, account)))
		return -EMSGSIZE;
	if ((client_exited(c) && nla_put_flag(skb, UMACCT_A_CLIENT_EXITED)) ||
	    (umacct_client_is_exiting(c) && nla_put_flag(skb, UMACCT_A_CLIENT_EXITING)))
		return -EMSGSIZE;
	return 0;
}

/*
 * The row of each hook in a status, in the order of umacct_hooks, with all but its state, its calls
 * and its reason: to copy one takes less than to put its attributes one by one.
 */
static struct sk_buff *rows;

/* Appends a hook's row. Its calls are last, unpadded: processors that umacct is for read them so. */
static int row_make(const struct hook *hook)
{
	struct nlattr *row = nla_nest_start(rows, UMACCT_A_STATUS_HOOK);

	if (!row || nla_put_string(rows, UMACCT_A_HOOK_NAME, hook->name) ||
	    nla_put_string(rows, UMACCT_A_HOOK_SYMBOL, hook->probe.symbol) ||
	    (hook->required && nla_put_flag(rows, UMACCT_A_HOOK_REQUIRED)) ||
	    nla_put_u32(rows, UMACCT_A_HOOK_STATE, 0) ||
	    nla_put(rows, UMACCT_A_HOOK_CALLS, sizeof(u64), &(u64) { 0 }))
		return -ENOMEM;
	nla_nest_end(rows, row);
	return 0;
}

/* Undoes umacct_message_init(), when there are no requests for the status any more. */
void umacct_message_exit(void)
{
	kfree_skb(rows);
}

/* Makes what doesn't change in a status. Returns 0 or -ENOMEM. */
int umacct_message_init(void)
{
	struct hook *hook;

	rows = alloc_skb(SKB_WITH_OVERHEAD(SZ_16K), GFP_KERNEL);
	if (!rows)
		return -ENOMEM;
	for_each_hook(hook) {
		if (row_make(hook)) {
			umacct_message_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/* Room for a status; too little only if many hooks have a reason. */
size_t umacct_message_status_size(void)
{
	return SZ_1K + rows->len;
}

/* Counts are for readers that may see all. @row: what doesn't change of it. */
static int put_hook(struct sk_buff *skb, const struct reader *reader, const struct hook *hook,
		    const struct nlattr *row)
{
	const unsigned int calls_size = nla_total_size(sizeof(u64));
	const u64 calls = umacct_probe_calls(&hook->probe);
	const u64 missed = probe_missed(&hook->probe);
	void *start, *end;

	if (unlikely(skb_tailroom(skb) < row->nla_len))
		return -EMSGSIZE;
	start = skb_put_data(skb, row, row->nla_len - (reader->all ? 0 : calls_size));
	end = start + row->nla_len;
	*(u32 *)(end - calls_size - sizeof(u32)) = hook->state;
	if (reader->all)
		memcpy(end - sizeof(calls), &calls, sizeof(calls));
	if ((hook->reason[0] && nla_put_string(skb, UMACCT_A_HOOK_REASON, hook->reason)) ||
	    (reader->all && missed &&
	     nla_put_u64_64bit(skb, UMACCT_A_HOOK_MISSED, missed, UMACCT_A_HOOK_PAD)))
		return -EMSGSIZE;
	nla_nest_end(skb, start);
	return 0;
}

/* Settings that are pending until the driver is loaded are not unenforced. Context: under umacct_hook_lock(). */
static const char *status_unenforced(void)
{
	if (!READ_ONCE(umacct_settings.precheck_enabled) && !READ_ONCE(umacct_settings.throttles))
		return NULL;
	if (driver_profile(HOOK_NVIDIA)->state == UMACCT_DRIVER_ABSENT)
		return NULL;
	return umacct_driver_unenforced();
}

/* Context: under umacct_hook_lock(). */
static u32 status_flags(const char *charge_why, const char *unenforced)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);
	const char *view_why;

	return (umacct_memcg_on_v2() ? UMACCT_STATUS_MEMCG_V2 : 0) |
	       (umacct_kmem_online() ? UMACCT_STATUS_KMEM : 0) |
	       (READ_ONCE(profile->native_charge) ? UMACCT_STATUS_NATIVE_CHARGE : 0) |
	       (profile->page_pools ? UMACCT_STATUS_PAGE_POOLS : 0) |
	       (!charge_why ? UMACCT_STATUS_CHARGE_READY : 0) |
	       (umacct_view_possible(&view_why) ? UMACCT_STATUS_VIEW_READY : 0) |
	       /* Whether there are any, not how many. */
	       (data_race(cgrp_dfl_root.cgrp.nr_descendants) ? UMACCT_STATUS_CGROUP_V2 : 0) |
	       (umacct_probe_selftest() ? UMACCT_STATUS_SELFTEST : 0) |
	       (unenforced ? UMACCT_STATUS_UNENFORCED : 0);
}

/* Puts what the driver's pools hold into a status, if it is known. May sleep. */
int umacct_message_put_pools(struct sk_buff *skb)
{
	u64 bytes;

	if (!umacct_pools_read(&bytes))
		return 0;
	return nla_put_u64_64bit(skb, UMACCT_A_STATUS_POOLS, bytes, UMACCT_A_STATUS_PAD);
}

static int read_sums(const struct account *account, void *arg)
{
	struct ledger_totals *totals = arg;
	struct held held;

	umacct_account_held_locked(account, &held);
	totals->usage = held.usage;
	totals->charged = held.charged;
	totals->managed = held.managed;
	totals->metadata = account->metadata;
	return 0;
}

/*
 * The real figures of /proc/meminfo that views change: a view changes what the kernel's functions
 * say only for those of their callers that answer user space, and this is none of them.
 */
static int put_memory_of_machine(struct sk_buff *skb)
{
	unsigned long reclaimable = global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B);
	unsigned long kreclaimable = reclaimable + global_node_page_state(NR_KERNEL_MISC_RECLAIMABLE);
	long cached = global_node_page_state(NR_FILE_PAGES);
	struct sysinfo info = { };

	si_meminfo(&info);
	cached -= info.bufferram;
#ifdef CONFIG_SWAP
	cached -= global_node_page_state(NR_SWAPCACHE);
#endif
	{
		const struct u64_attr numbers[] = {
			{ UMACCT_A_STATUS_MEMORY_TOTAL, (u64)info.totalram << PAGE_SHIFT },
			{ UMACCT_A_STATUS_MEMORY_FREE, (u64)info.freeram << PAGE_SHIFT },
			{ UMACCT_A_STATUS_MEMORY_AVAILABLE, (u64)si_mem_available() << PAGE_SHIFT },
			{ UMACCT_A_STATUS_MEMORY_BUFFERS, (u64)info.bufferram << PAGE_SHIFT },
			{ UMACCT_A_STATUS_MEMORY_CACHED, (u64)max(cached, 0L) << PAGE_SHIFT },
			{ UMACCT_A_STATUS_MEMORY_SRECLAIMABLE, (u64)reclaimable << PAGE_SHIFT },
			{ UMACCT_A_STATUS_MEMORY_KRECLAIMABLE, (u64)kreclaimable << PAGE_SHIFT },
		};

		return put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_STATUS_PAD);
	}
}

/* Puts sums into a status: of what the reader may see. */
int umacct_message_put_totals(struct sk_buff *skb, const struct reader *reader)
{
	struct ledger_totals totals = {};

	if (reader->all)
		umacct_ledger_read_totals(&totals);
	else if (reader->own)
		/* Fills in what the reader may see of all accounts; the rest stays 0 and is not put. */
		umacct_read_account(reader->own, read_sums, &totals);
	if (put_status_figures(skb, &totals, reader->all))
		return -EMSGSIZE;
	if (!reader->all)
		return 0;
	return put_memory_of_machine(skb) ?: umacct_message_put_pools(skb);
}

/* Puts the driver and the hooks into a status. May sleep. */
int umacct_message_put_driver(struct sk_buff *skb, const struct reader *reader)
{
	const struct driver_profile *profile, *uvm;
	const struct nlattr *row = (const void *)rows->data;
	const char *why = NULL, *unenforced, *reason;
	int err = -EMSGSIZE;
	struct hook *hook;
	u32 flags;

	umacct_hook_lock();
	profile = driver_profile(HOOK_NVIDIA);
	uvm = driver_profile(HOOK_UVM);
	if (umacct_charge_possible(&why))
		why = NULL;
	/* Asked once: what a hook is wanted for may change meanwhile, its reason can't. */
	unenforced = status_unenforced();
	flags = status_flags(why, unenforced);
	reason = unenforced ?: profile->reason;
	if (nla_put_u32(skb, UMACCT_A_STATUS_DRIVER_STATE, profile->state) ||
	    (profile->version[0] &&
	     nla_put_string(skb, UMACCT_A_STATUS_DRIVER_VERSION, profile->version)) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_UVM_STATE, uvm->state) ||
	    (reason[0] && nla_put_string(skb, UMACCT_A_STATUS_REASON, reason)) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_FLAGS, flags) ||
	    (why && nla_put_string(skb, UMACCT_A_STATUS_CHARGE_REASON, why)))
		goto out;
	for_each_hook(hook) {
		if (umacct_hook_applies(hook) && put_hook(skb, reader, hook, row))
			goto out;
		row = (const void *)row + row->nla_len;
	}
	err = 0;
out:
	umacct_hook_unlock();
	return err;
}

/*
 * Puts whether what was set has an effect: the driver's state, and a reason if it has none. May
 * sleep.
 */
int umacct_message_put_enforcement(struct sk_buff *skb, int state_attr, int reason_attr)
{
	const char *why;
	int err = 0;

	umacct_hook_lock();
	why = umacct_driver_unenforced();
	if (nla_put_u32(skb, state_attr, driver_profile(HOOK_NVIDIA)->state) ||
	    (why && nla_put_string(skb, reason_attr, why)))
		err = -EMSGSIZE;
	umacct_hook_unlock();
	return err;
}

/* Room for the attributes of an event. */
size_t umacct_message_event_size(const struct event *event)
{
	const struct account *limit = event->what.limit_account;

	/* The numbers, each with its padding, and the name. */
	return SZ_512 + strlen(event->account->path) + (limit ? strlen(limit->path) : 0);
}

/* Puts the attributes of an event. */
int umacct_message_put_event(struct sk_buff *skb, const struct event *event)
{
	const struct account *limit = event->what.limit_account;

	if (put_event_figures(skb, event) ||
	    nla_put_u32(skb, UMACCT_A_EVENT_TYPE, event->type) ||
	    nla_put_string(skb, UMACCT_A_EVENT_PATH, event->account->path) ||
	    nla_put_string(skb, UMACCT_A_EVENT_COMM, event->what.comm))
		return -EMSGSIZE;
	if (limit &&
	    (nla_put_u64_64bit(skb, UMACCT_A_EVENT_LIMIT_ID, limit->id, UMACCT_A_EVENT_PAD) ||
	     nla_put_string(skb, UMACCT_A_EVENT_LIMIT_PATH, limit->path)))
		return -EMSGSIZE;
	return 0;
}
