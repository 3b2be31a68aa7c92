// SPDX-License-Identifier: GPL-2.0-only
/*
 * The family's messages: what the ledger and the hooks know as attributes, which
 * include/umacct.h describes.
 */
#include <linux/cgroup.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sizes.h>
#include <linux/vmstat.h>

#include "compat.h"
#include "hooks/charge.h"
#include "hooks/driver.h"
#include "hooks/table.h"
#include "hooks/view.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/settings.h"
#include "memcg.h"
#include "netlink/figures.h"
#include "netlink/message.h"
#include "netlink/reader.h"
#include "pools.h"

/* family.c says what it answers, and registers it. */
struct genl_family message_family __ro_after_init = {
	.name = UMACCT_FAMILY_NAME,
	.version = UMACCT_FAMILY_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,
	.resv_start_op = UMACCT_CMD_STATUS_GET,
};

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

/**
 * message_put_account() - the attributes of an account
 * @skb: the message
 * @reader: who asks
 * @a: the account; account_update_locked() was called for it
 *
 * Context: ledger_lock held.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int message_put_account(struct sk_buff *skb, const struct reader *reader,
			const struct account *a)
{
	if (put_account_figures(skb, a) ||
	    nla_put_string(skb, UMACCT_A_ACCOUNT_PATH, reader_path(reader, a)))
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

/**
 * message_put_client() - the attributes of a client
 * @skb: the message
 * @reader: who asks
 * @c: the client
 * @account: whom it counts for
 *
 * Context: ledger_lock held.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int message_put_client(struct sk_buff *skb, const struct reader *reader, const struct client *c,
		       const struct account *account)
{
	if (put_client_figures(skb, c, account) ||
	    nla_put_u32(skb, UMACCT_A_CLIENT_PID, pid_nr_ns(c->pid, reader->pids)) ||
	    nla_put_string(skb, UMACCT_A_CLIENT_COMM, c->comm) ||
	    nla_put_string(skb, UMACCT_A_CLIENT_PATH, reader_path(reader, account)))
		return -EMSGSIZE;
	if (client_exited(c) && nla_put_flag(skb, UMACCT_A_CLIENT_EXITED))
		return -EMSGSIZE;
	return 0;
}

/* Nobody else's business is how often a hook was called. Most never were. */
static int put_hook_counts(struct sk_buff *skb, const struct hook *hook)
{
	u64 calls = probe_calls(&hook->probe), missed = probe_missed(&hook->probe);

	if ((calls && nla_put_u64_64bit(skb, UMACCT_A_HOOK_CALLS, calls, UMACCT_A_HOOK_PAD)) ||
	    (missed && nla_put_u64_64bit(skb, UMACCT_A_HOOK_MISSED, missed, UMACCT_A_HOOK_PAD)))
		return -EMSGSIZE;
	return 0;
}

static int put_hook(struct sk_buff *skb, const struct reader *reader, const struct hook *hook)
{
	struct nlattr *nest = nla_nest_start(skb, UMACCT_A_STATUS_HOOK);

	if (!nest ||
	    nla_put(skb, UMACCT_A_HOOK_NAME, hook->name_size, hook->name) ||
	    nla_put(skb, UMACCT_A_HOOK_SYMBOL, hook->symbol_size, hook->probe.symbol) ||
	    nla_put_u32(skb, UMACCT_A_HOOK_STATE, hook->state) ||
	    (hook->required && nla_put_flag(skb, UMACCT_A_HOOK_REQUIRED)) ||
	    (hook->reason[0] && nla_put_string(skb, UMACCT_A_HOOK_REASON, hook->reason)) ||
	    (reader->all && put_hook_counts(skb, hook)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* What waits for the driver to come is as it should be. Context: under hook_lock(). */
static const char *status_unenforced(void)
{
	if (!READ_ONCE(settings.precheck_enabled) && !READ_ONCE(settings.throttles))
		return NULL;
	if (driver_profile(HOOK_NVIDIA)->state == UMACCT_DRIVER_ABSENT)
		return NULL;
	return driver_unenforced();
}

/* Context: under hook_lock(). */
static u32 status_flags(const char *charge_why, const char *unenforced)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);
	const char *view_why;
	u32 flags = 0;

	if (memcg_on_v2())
		flags |= UMACCT_STATUS_MEMCG_V2;
	if (umacct_kmem_online())
		flags |= UMACCT_STATUS_KMEM;
	if (READ_ONCE(profile->native_charge))
		flags |= UMACCT_STATUS_NATIVE_CHARGE;
	if (profile->page_pools)
		flags |= UMACCT_STATUS_PAGE_POOLS;
	if (!charge_why)
		flags |= UMACCT_STATUS_CHARGE_READY;
	if (view_possible(&view_why))
		flags |= UMACCT_STATUS_VIEW_READY;
	/* Whether there are any, not how many. */
	if (data_race(cgrp_dfl_root.cgrp.nr_descendants))
		flags |= UMACCT_STATUS_CGROUP_V2;
	if (probe_selftest())
		flags |= UMACCT_STATUS_SELFTEST;
	if (unenforced)
		flags |= UMACCT_STATUS_UNENFORCED;
	return flags;
}

/**
 * message_put_pools() - what the driver's pools hold, as an attribute of a status
 * @skb: the message
 *
 * Context: may sleep.
 * Return: 0, also if it isn't known, or -EMSGSIZE if it doesn't fit.
 */
int message_put_pools(struct sk_buff *skb)
{
	u64 bytes;

	if (!pools_read(&bytes))
		return 0;
	return nla_put_u64_64bit(skb, UMACCT_A_STATUS_POOLS, bytes, UMACCT_A_STATUS_PAD);
}

/* Of what it may see, the rest stays 0 and is not put. */
static void read_own_totals(const struct reader *reader, struct ledger_totals *totals)
{
	struct account *account;

	raw_spin_lock_irq(&ledger_lock);
	account = account_find_locked(reader->own);
	if (account && reader_may_see(reader, account)) {
		totals->usage = account->usage;
		totals->charged = account->charged;
		totals->managed = account->managed;
		totals->metadata = account->metadata;
	}
	raw_spin_unlock_irq(&ledger_lock);
}

/*
 * What a view changes of /proc/meminfo, as it is: a view changes what the kernel's functions
 * say only for those of their callers that answer user space, and this is none of them.
 */
static int put_memory_of_machine(struct sk_buff *skb)
{
	unsigned long reclaimable = global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B);
	long cached = global_node_page_state(NR_FILE_PAGES);
	struct sysinfo info = { };

	si_meminfo(&info);
	cached -= info.bufferram;
#ifdef CONFIG_SWAP
	cached -= global_node_page_state(NR_SWAPCACHE);
#endif
	{
		const struct u64_attr pages[] = {
			{ UMACCT_A_STATUS_MEMORY_TOTAL, info.totalram },
			{ UMACCT_A_STATUS_MEMORY_FREE, info.freeram },
			{ UMACCT_A_STATUS_MEMORY_AVAILABLE, si_mem_available() },
			{ UMACCT_A_STATUS_MEMORY_BUFFERS, info.bufferram },
			{ UMACCT_A_STATUS_MEMORY_CACHED, max(cached, 0L) },
			{ UMACCT_A_STATUS_MEMORY_SRECLAIMABLE, reclaimable },
			{ UMACCT_A_STATUS_MEMORY_KRECLAIMABLE,
			  reclaimable + global_node_page_state(NR_KERNEL_MISC_RECLAIMABLE) },
		};
		size_t i;

		for (i = 0; i < ARRAY_SIZE(pages); i++)
			if (nla_put_u64_64bit(skb, pages[i].type, pages[i].value << PAGE_SHIFT,
					      UMACCT_A_STATUS_PAD))
				return -EMSGSIZE;
	}
	return 0;
}

/**
 * message_put_totals() - sums, as attributes of a status
 * @skb: the message
 * @reader: who asks; may only see all of what it may see all of
 *
 * Context: ledger_lock not held.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int message_put_totals(struct sk_buff *skb, const struct reader *reader)
{
	struct ledger_totals totals = {};

	if (reader->all)
		ledger_read_totals(&totals);
	else
		read_own_totals(reader, &totals);
	if (put_status_figures(skb, &totals, reader->all))
		return -EMSGSIZE;
	if (!reader->all)
		return 0;
	return put_memory_of_machine(skb) ?: message_put_pools(skb);
}

/**
 * message_put_driver() - the driver and the hooks, as attributes of a status
 * @skb: the message
 * @reader: who asks
 *
 * Context: may sleep.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int message_put_driver(struct sk_buff *skb, const struct reader *reader)
{
	const struct driver_profile *profile, *uvm;
	const char *why = NULL, *unenforced, *reason;
	int err = -EMSGSIZE;
	struct hook *hook;
	u32 flags;

	hook_lock();
	profile = driver_profile(HOOK_NVIDIA);
	uvm = driver_profile(HOOK_UVM);
	if (charge_possible(&why))
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
	for_each_hook(hook)
		if (hook_applies(hook) && put_hook(skb, reader, hook))
			goto out;
	err = 0;
out:
	hook_unlock();
	return err;
}

/**
 * message_put_enforcement() - does what was set have an effect?
 * @skb: the message
 * @state_attr: number of the attribute for the driver's state
 * @reason_attr: number of the attribute for why not
 *
 * Context: may sleep.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int message_put_enforcement(struct sk_buff *skb, int state_attr, int reason_attr)
{
	const char *why;
	int err = 0;

	hook_lock();
	why = driver_unenforced();
	if (nla_put_u32(skb, state_attr, driver_profile(HOOK_NVIDIA)->state) ||
	    (why && nla_put_string(skb, reason_attr, why)))
		err = -EMSGSIZE;
	hook_unlock();
	return err;
}

/**
 * message_event_size() - room for the attributes of an event
 * @event: what happened
 *
 * Context: any.
 */
size_t message_event_size(const struct event *event)
{
	const struct account *limit = event->what.limit_account;

	/* The numbers, each with its padding, and the name. */
	return SZ_512 + strlen(event->account->path) + (limit ? strlen(limit->path) : 0);
}

/**
 * message_put_event() - the attributes of an event
 * @skb: the message
 * @event: what happened
 *
 * Context: any.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int message_put_event(struct sk_buff *skb, const struct event *event)
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
