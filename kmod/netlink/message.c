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
#include "hooks/possible.h"
#include "hooks/table.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/read.h"
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

/**
 * umacct_message_put_account() - the attributes of an account
 * @skb: the message
 * @reader: the reader that asks
 * @a: the account; account_update_locked() was called for it
 *
 * Context: umacct_ledger_lock held.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
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

/**
 * umacct_message_put_client() - the attributes of a client
 * @skb: the message
 * @reader: the reader that asks
 * @c: the client
 * @account: whom it counts for
 *
 * Context: umacct_ledger_lock held.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int umacct_message_put_client(struct sk_buff *skb, const struct reader *reader,
			      const struct client *c, const struct account *account)
{
	struct held held;

	umacct_client_held_locked(c, &held);
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

/**
 * struct label - a hook's row in a status, but for what changes
 * @size: of all of it
 * @state: where the hook's state is in it
 * @row: the nest, with its name, its symbol, whether it is required, its state and its calls
 *
 * A status has a row for each hook: one is copied, which takes less than to put its
 * attributes one by one.
 */
struct label {
	unsigned int size;
	unsigned int state;
	struct nlattr *row;
};

/* In the order of umacct_hooks. */
static struct label *labels;
static size_t labels_size;

/* Zeroes, if @data is NULL. Returns where the data is. */
static unsigned int label_add(struct label *label, u16 type, const void *data, unsigned int size)
{
	struct nlattr *attr = (void *)label->row + label->size;

	attr->nla_type = type;
	attr->nla_len = nla_attr_size(size);
	if (data)
		memcpy(nla_data(attr), data, size);
	label->size += nla_total_size(size);
	return nla_data(attr) - (void *)label->row;
}

static bool label_make(struct label *label, const struct hook *hook)
{
	const unsigned int name = strlen(hook->name) + 1, symbol = strlen(hook->probe.symbol) + 1;

	label->row = kzalloc(nla_total_size(nla_total_size(name) + nla_total_size(symbol) +
					    nla_total_size(0) + nla_total_size(sizeof(u32)) +
					    nla_total_size(sizeof(u64))), GFP_KERNEL);
	if (!label->row)
		return false;
	label_add(label, UMACCT_A_STATUS_HOOK | NLA_F_NESTED, NULL, 0);
	label_add(label, UMACCT_A_HOOK_NAME, hook->name, name);
	label_add(label, UMACCT_A_HOOK_SYMBOL, hook->probe.symbol, symbol);
	if (hook->required)
		label_add(label, UMACCT_A_HOOK_REQUIRED, NULL, 0);
	label->state = label_add(label, UMACCT_A_HOOK_STATE, NULL, sizeof(u32));
	/* Processors that umacct is for read numbers wherever they are: no padding before it. */
	label_add(label, UMACCT_A_HOOK_CALLS, NULL, sizeof(u64));
	return true;
}

/**
 * umacct_message_exit() - undo umacct_message_init()
 *
 * Context: may sleep; nobody asks for the status any more.
 */
void umacct_message_exit(void)
{
	unsigned int i;

	for (i = 0; labels && i < umacct_nr_hooks; i++)
		kfree(labels[i].row);
	kfree(labels);
	labels = NULL;
}

/**
 * umacct_message_init() - make what doesn't change in a status
 *
 * Context: module initialisation.
 * Return: 0 or -ENOMEM.
 */
int umacct_message_init(void)
{
	unsigned int i;

	labels = kcalloc(umacct_nr_hooks, sizeof(*labels), GFP_KERNEL);
	for (i = 0; labels && i < umacct_nr_hooks; i++) {
		if (label_make(&labels[i], umacct_hooks[i]))
			labels_size += labels[i].size;
		else
			umacct_message_exit();
	}
	return labels ? 0 : -ENOMEM;
}

/**
 * umacct_message_status_size() - room for a status
 *
 * Context: any.
 * Return: bytes; too few only if many hooks have a reason.
 */
size_t umacct_message_status_size(void)
{
	return SZ_1K + labels_size;
}

/* Counts are for readers that may see all. */
static int put_hook(struct sk_buff *skb, const struct reader *reader, unsigned int at)
{
	const unsigned int calls_size = nla_total_size(sizeof(u64));
	const struct hook *hook = umacct_hooks[at];
	const struct label *label = &labels[at];
	const u64 calls = umacct_probe_calls(&hook->probe);
	const u64 missed = umacct_probe_missed(&hook->probe);
	void *row = skb_tail_pointer(skb);

	if (nla_append(skb, label->size - (reader->all ? 0 : calls_size), label->row))
		return -EMSGSIZE;
	*(u32 *)(row + label->state) = hook->state;
	if (reader->all)
		memcpy(row + label->size - sizeof(calls), &calls, sizeof(calls));
	if ((hook->reason[0] && nla_put_string(skb, UMACCT_A_HOOK_REASON, hook->reason)) ||
	    (reader->all && missed &&
	     nla_put_u64_64bit(skb, UMACCT_A_HOOK_MISSED, missed, UMACCT_A_HOOK_PAD)))
		return -EMSGSIZE;
	nla_nest_end(skb, row);
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
	u32 flags = 0;

	if (umacct_memcg_on_v2())
		flags |= UMACCT_STATUS_MEMCG_V2;
	if (umacct_kmem_online())
		flags |= UMACCT_STATUS_KMEM;
	if (READ_ONCE(profile->native_charge))
		flags |= UMACCT_STATUS_NATIVE_CHARGE;
	if (profile->page_pools)
		flags |= UMACCT_STATUS_PAGE_POOLS;
	if (!charge_why)
		flags |= UMACCT_STATUS_CHARGE_READY;
	if (umacct_view_possible(&view_why))
		flags |= UMACCT_STATUS_VIEW_READY;
	/* Whether there are any, not how many. */
	if (data_race(cgrp_dfl_root.cgrp.nr_descendants))
		flags |= UMACCT_STATUS_CGROUP_V2;
	if (umacct_probe_selftest())
		flags |= UMACCT_STATUS_SELFTEST;
	if (unenforced)
		flags |= UMACCT_STATUS_UNENFORCED;
	return flags;
}

/**
 * umacct_message_put_pools() - what the driver's pools hold, as an attribute of a status
 * @skb: the message
 *
 * Context: may sleep.
 * Return: 0, also if it isn't known, or -EMSGSIZE if it doesn't fit.
 */
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
 * umacct_message_put_totals() - sums, as attributes of a status
 * @skb: the message
 * @reader: the reader that asks; gets sums of what it may see
 *
 * Context: umacct_ledger_lock not held.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int umacct_message_put_totals(struct sk_buff *skb, const struct reader *reader)
{
	struct ledger_totals totals = {};

	if (reader->all)
		umacct_ledger_read_totals(&totals);
	else if (reader->own)
		/* Of what it may see all of; the rest stays 0 and is not put. */
		umacct_read_account(reader->own, read_sums, &totals);
	if (put_status_figures(skb, &totals, reader->all))
		return -EMSGSIZE;
	if (!reader->all)
		return 0;
	return put_memory_of_machine(skb) ?: umacct_message_put_pools(skb);
}

/**
 * umacct_message_put_driver() - the driver and the hooks, as attributes of a status
 * @skb: the message
 * @reader: the reader that asks
 *
 * Context: may sleep.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
int umacct_message_put_driver(struct sk_buff *skb, const struct reader *reader)
{
	const struct driver_profile *profile, *uvm;
	const char *why = NULL, *unenforced, *reason;
	int err = -EMSGSIZE;
	unsigned int i;
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
	for (i = 0; i < umacct_nr_hooks; i++)
		if (umacct_hook_applies(umacct_hooks[i]) && put_hook(skb, reader, i))
			goto out;
	err = 0;
out:
	umacct_hook_unlock();
	return err;
}

/**
 * umacct_message_put_enforcement() - does what was set have an effect?
 * @skb: the message
 * @state_attr: number of the attribute for the driver's state
 * @reason_attr: number of the attribute for why not
 *
 * Context: may sleep.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
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

/**
 * umacct_message_event_size() - room for the attributes of an event
 * @event: what happened
 *
 * Context: any.
 */
size_t umacct_message_event_size(const struct event *event)
{
	const struct account *limit = event->what.limit_account;

	/* The numbers, each with its padding, and the name. */
	return SZ_512 + strlen(event->account->path) + (limit ? strlen(limit->path) : 0);
}

/**
 * umacct_message_put_event() - the attributes of an event
 * @skb: the message
 * @event: what happened
 *
 * Context: any.
 * Return: 0, or -EMSGSIZE if it doesn't fit.
 */
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
