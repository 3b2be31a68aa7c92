// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits. Where one may apply, an allocation is part of the usage of every account from its
 * own up to the root before the driver is asked, and is taken out again if that fails, as
 * the kernel's page_counter does it. Usage may be above a limit that was lowered; it never
 * gets there by an allocation.
 *
 * The driver tries a refused allocation again in smaller pages, from the same
 * thread: that is the same refusal.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/vmstat.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/count.h"
#include "ledger/event.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/settings.h"
#include "memcg.h"
#include "pools.h"

/* Excess at which the penalty is the longest, as a part of the limit. */
#define FULL_PENALTY_PART	8

u64 limit_reserve_count;

/*
 * Bytes that the driver is allocating just now, where there is a reserve; and how many ever
 * were, and no longer are: whoever looked at the memory before that still saw it as free.
 */
static u64 reserve_pending;
static u64 reserve_settled;

static bool refused_before(struct client *client, const struct allocation *alloc)
{
	u32 block = alloc->page_size >> PAGE_SHIFT;
	bool again;

	if (!client)
		return false;
	again = client->refused_tid == current->pid &&
		client->refused_after == lower_32_bits(client->allocs) &&
		client->refused_pages == alloc->pages &&
		client->refused_block > block;
	client->refused_tid = current->pid;
	client->refused_after = lower_32_bits(client->allocs);
	client->refused_pages = alloc->pages;
	client->refused_block = block;
	return again;
}

static void count_refusal(struct account *account)
{
	for (; account; account = account->parent)
		account->refusals++;
}

static void refuse_hard(struct allocation *alloc, struct account *limiting)
{
	if (refused_before(alloc->client, alloc))
		return;
	count_refusal(alloc->account);
	limiting->hard_count++;
	event_post_locked(UMACCT_EVENT_HARD_REFUSED, alloc->account, limiting,
			  alloc->bytes, limiting->usage, limiting->settings.hard);
}

static void refuse_reserve(struct allocation *alloc, u64 reserve, u64 available)
{
	struct account *account;

	if (refused_before(alloc->client, alloc))
		return;
	count_refusal(alloc->account);
	for (account = alloc->account; account; account = account->parent)
		account->reserve_count++;
	limit_reserve_count++;
	event_post_locked(UMACCT_EVENT_RESERVE_REFUSED, alloc->account, NULL,
			  alloc->bytes, available, reserve);
}

/*
 * What the driver keeps in its pools, as far as MemAvailable hasn't got it: from 595.99 on the
 * driver has it among what the kernel's drivers can give back.
 */
static u64 pooled_beside_available(void)
{
	u64 pooled, counted;

	if (!pools_read(&pooled))
		return 0;
	counted = (u64)global_node_page_state_pages(NR_KERNEL_MISC_RECLAIMABLE) << PAGE_SHIFT;
	return pooled - min(pooled, counted);
}

static unsigned long cache_pages(void)
{
	return global_node_page_state(NR_ACTIVE_FILE) + global_node_page_state(NR_INACTIVE_FILE);
}

/*
 * What MemAvailable counts of memory that cgroups keep by memory.min, at the most: all page
 * cache and all of the kernel's objects that could be given back may be theirs.
 */
static unsigned long available_in_protected(void)
{
	unsigned long pages = memcg_protected();

	if (likely(!pages))
		return 0;
	return min(pages, cache_pages() + global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B));
}

static unsigned long cma_pages(void)
{
	unsigned long pages = 0;
	int nid, zone;

	for_each_online_node(nid)
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			pages += zone_cma_pages(&NODE_DATA(nid)->node_zones[zone]);
	return pages;
}

/*
 * What MemAvailable counts of CMA areas, at the most: their free pages, and page cache. It
 * isn't known how much page cache lies there: no more than there is, and no more than is
 * in use of the areas.
 */
static unsigned long available_in_cma(void)
{
	unsigned long areas = cma_pages(), free;

	if (likely(!areas))
		return 0;
	free = global_zone_page_state(NR_FREE_CMA_PAGES);
	return free + min(cache_pages(), areas - min(areas, free));
}

/**
 * limit_available() - how much memory the driver could have
 *
 * MemAvailable, in bytes, without what is in CMA areas: the driver's pages can't be
 * moved, so they are not taken from there. Without page cache that cgroups keep by
 * memory.min. And what the driver keeps in its pools; if that isn't known, nothing is
 * counted on.
 *
 * Context: may sleep.
 */
u64 limit_available(void)
{
	long pages = si_mem_available() - available_in_cma() - available_in_protected();

	return pooled_beside_available() + (pages > 0 ? (u64)pages << PAGE_SHIFT : 0);
}

/**
 * limit_room() - what is there for an allocation, where there is a reserve
 *
 * Context: may sleep; ledger_lock not held.
 */
struct limit_room limit_room(void)
{
	struct limit_room room = { .reserve = READ_ONCE(settings.reserve) };

	if (!room.reserve)
		return room;
	room.settled = READ_ONCE(reserve_settled);
	/* What settles from here on is taken for gone, whether or not it is seen as free. */
	smp_rmb();
	room.available = limit_available();
	return room;
}

/**
 * limit_check_hard_locked() - does an allocation fit under every hard limit?
 * @alloc: its account is known, and has or inherits one
 *
 * Context: ledger_lock held. event_kick() must follow.
 * Return: false if it is refused.
 */
bool limit_check_hard_locked(struct allocation *alloc)
{
	struct account *account;

	lockdep_assert_held(&ledger_lock);
	for (account = alloc->account; account; account = account->parent) {
		if (unlikely(account->usage + alloc->bytes > account->settings.hard)) {
			refuse_hard(alloc, account);
			return false;
		}
	}
	return true;
}

/**
 * limit_begin_reserve_locked() - limit_begin_locked(), as to the reserve
 * @alloc: its account is known
 * @room: from limit_room(), a moment ago
 *
 * Context: ledger_lock held. event_kick() must follow.
 * Return: false if it is refused, and nothing of it is pending.
 */
bool limit_begin_reserve_locked(struct allocation *alloc, const struct limit_room *room)
{
	u64 others = reserve_pending + (reserve_settled - room->settled);

	lockdep_assert_held(&ledger_lock);
	if (others + alloc->bytes + room->reserve > room->available) {
		refuse_reserve(alloc, room->reserve, room->available);
		return false;
	}
	reserve_pending += alloc->bytes;
	alloc->pending_reserve = true;
	return true;
}

/**
 * limit_settle_reserve_locked() - the driver has what was pending for the reserve, or won't
 *	take it; see limit_end_locked()
 * @alloc: the allocation
 *
 * Context: ledger_lock held.
 */
void limit_settle_reserve_locked(struct allocation *alloc)
{
	lockdep_assert_held(&ledger_lock);
	count_sub(&reserve_pending, alloc->bytes);
	WRITE_ONCE(reserve_settled, reserve_settled + alloc->bytes);
	alloc->pending_reserve = false;
}

/* Grows with the excess, to the account's longest at an eighth above the limit. */
static u64 penalty_ns(const struct account *account)
{
	u64 full = max(account->settings.soft / FULL_PENALTY_PART, 1ULL);
	u64 excess = min(account->usage - account->settings.soft, full);

	return mul_u64_u64_div_u64(account->settings.throttle_ns, excess, full);
}

/**
 * limit_over_soft_locked() - an allocation has brought usage above a soft limit, or to more
 * @account: whose limit it is
 * @alloc: the allocation; its penalty is the longest of those of its accounts
 *
 * Context: ledger_lock held. event_kick() must follow.
 */
void limit_over_soft_locked(struct account *account, struct allocation *alloc)
{
	u64 ns = penalty_ns(account);

	lockdep_assert_held(&ledger_lock);
	if (ns > alloc->penalty_ns) {
		alloc->penalty_ns = ns;
		alloc->penalty_id = account->id;
	}
	limit_check_soft_locked(account, alloc->bytes);
}

/**
 * limit_add_managed_locked() - what is special about the usage of managed memory
 * @account: whom it counts for
 * @bytes: how much is added, or less than 0
 *
 * Context: ledger_lock held.
 */
void limit_add_managed_locked(struct account *account, s64 bytes)
{
	lockdep_assert_held(&ledger_lock);
	for (; account; account = account->parent)
		account->managed += bytes;
}

/**
 * limit_uncharge_locked() - undo limit_charge_locked(): the driver has not allocated
 * @alloc: the allocation
 *
 * Context: ledger_lock held. event_kick() must follow.
 */
void limit_uncharge_locked(const struct allocation *alloc)
{
	struct account *account = account_nearest_online(alloc->account);

	lockdep_assert_held(&ledger_lock);
	if (alloc->kind == ALLOCATION_MANAGED)
		limit_add_managed_locked(account, -alloc->bytes);
	count_sub(&account->local, alloc->bytes);
	for (; account; account = account->parent) {
		count_sub(&account->usage, alloc->bytes);
		account->metadata -= alloc->metadata;
		account->allocs -= alloc->kind == ALLOCATION_SYSTEM;
		if (unlikely(account->over_soft))
			limit_check_soft_locked(account, alloc->bytes);
	}
}

/**
 * limit_check_soft_locked() - say so if usage has crossed the soft limit, either way
 * @account: the account
 * @bytes: what was allocated or freed
 *
 * Context: ledger_lock held. event_kick() must follow.
 */
void limit_check_soft_locked(struct account *account, u64 bytes)
{
	bool over = account->usage > account->settings.soft;

	lockdep_assert_held(&ledger_lock);
	if (over == account->over_soft)
		return;
	account->over_soft = over;
	if (over)
		account->soft_count++;
	event_post_locked(over ? UMACCT_EVENT_SOFT_CROSSED : UMACCT_EVENT_SOFT_RECOVERED,
			  account, account, bytes, account->usage, account->settings.soft);
}

/**
 * limit_set() - change settings of an account
 * @account: the account
 * @change: what to change
 * @why: set to a sentence if the change is refused
 *
 * Everything is changed, or nothing. Limits below the usage are taken.
 *
 * Context: ledger_lock not held.
 * Return: 0; -EINVAL if the soft limit would be above the hard one, -ENOENT if the
 *	cgroup was removed.
 */
int limit_set(struct account *account, const struct limit_change *change, const char **why)
{
	struct account_settings to;
	enum setting_id id;
	int err = 0;

	raw_spin_lock_irq(&ledger_lock);
	if (!account->online) {
		*why = "the cgroup was removed meanwhile";
		err = -ENOENT;
		goto out;
	}
	to = account->settings;
	for (id = 0; id < NR_SETTINGS; id++)
		if (change->mask & BIT(id))
			setting_write(&to, id, setting_read(&change->to, id));
	if (to.hard != UMACCT_UNLIMITED && to.soft != UMACCT_UNLIMITED && to.soft > to.hard) {
		*why = "the soft limit would be above the hard limit";
		err = -EINVAL;
		goto out;
	}
	account_configure_locked(account, &to);
	limit_check_soft_locked(account, 0);
out:
	raw_spin_unlock_irq(&ledger_lock);
	event_kick();
	return err;
}
