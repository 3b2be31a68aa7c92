// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits. Where one may apply, an allocation is part of the usage of every account from its
 * own up to the root before the driver is asked, and is taken out again if a limit forbids it or
 * the driver fails, as the kernel's page_counter does it. Usage may be above a limit that was
 * lowered; it never gets there by an allocation.
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

u64 umacct_limit_reserve_count;
u64 umacct_limit_unattributed_count;

/*
 * Bytes that the driver is allocating just now, where there is a reserve; and how many ever
 * were, and no longer are: an allocation that looked at the memory before still saw it as free.
 */
static atomic64_t reserve_pending;
static atomic64_t reserve_settled;

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

/**
 * umacct_limit_refuse_hard_locked() - a hard limit forbids an allocation
 * @alloc: the allocation
 * @limiting: the account whose limit it is
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_limit_refuse_hard_locked(struct allocation *alloc, struct account *limiting)
{
	lockdep_assert_held(&umacct_ledger_lock);
	if (refused_before(alloc->client, alloc))
		return;
	count_refusal(alloc->account);
	limiting->hard_count++;
	umacct_event_post_locked(UMACCT_EVENT_HARD_REFUSED, alloc->account, limiting,
				 alloc->bytes, account_usage(limiting), limiting->settings.hard);
}

/**
 * umacct_limit_refuse_reserve_locked() - the reserve forbids an allocation
 * @alloc: the allocation
 * @room: what there was for it
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_limit_refuse_reserve_locked(struct allocation *alloc, const struct limit_room *room)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	if (refused_before(alloc->client, alloc))
		return;
	count_refusal(alloc->account);
	for (account = alloc->account; account; account = account->parent)
		account->reserve_count++;
	umacct_limit_reserve_count++;
	umacct_event_post_locked(UMACCT_EVENT_RESERVE_REFUSED, alloc->account, NULL,
				 alloc->bytes, room->available, room->leave);
}

/**
 * umacct_limit_refuse_impossible_locked() - a request is for more than the machine's memory
 * @alloc: the allocation, which is in no usage
 *
 * Where a hard limit forbids it, too, it is refused for that.
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_limit_refuse_impossible_locked(struct allocation *alloc)
{
	struct account *at;

	lockdep_assert_held(&umacct_ledger_lock);
	for (at = account_nearest_online(alloc->account); at; at = at->parent) {
		if (at->settings.hard != UMACCT_UNLIMITED) {
			umacct_limit_refuse_hard_locked(alloc, at);
			return;
		}
	}
}

/*
 * What the driver keeps in its pools, as far as MemAvailable hasn't got it: from 595.99 on the
 * driver has it among what the kernel's drivers can give back.
 */
static u64 pooled_beside_available(void)
{
	u64 pooled, counted;

	if (!umacct_pools_read(&pooled))
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
	unsigned long pages = umacct_memcg_protected();

	if (likely(!pages))
		return 0;
	return min(pages, cache_pages() + global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B));
}

/* Set aside at boot. To look at each node would cost each view 170 instructions. */
static unsigned long cma_areas __ro_after_init;

/**
 * umacct_limit_init() - see what doesn't change
 *
 * Context: module initialisation.
 */
void umacct_limit_init(void)
{
	int nid, zone;

	for_each_online_node(nid)
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			cma_areas += zone_cma_pages(&NODE_DATA(nid)->node_zones[zone]);
}

/*
 * What MemAvailable counts of CMA areas, at the most: their free pages, and page cache. It
 * isn't known how much page cache lies there: no more than there is, and no more than is
 * in use of the areas.
 */
static unsigned long available_in_cma(void)
{
	unsigned long areas = cma_areas, free;

	if (likely(!areas))
		return 0;
	free = global_zone_page_state(NR_FREE_CMA_PAGES);
	return free + min(cache_pages(), areas - min(areas, free));
}

/**
 * umacct_limit_available_of() - how much memory the driver could have
 * @pages: what si_mem_available() says just now
 *
 * That, in bytes, without what is in CMA areas: the driver's pages can't be
 * moved, so they are not taken from there. Without page cache that cgroups keep by
 * memory.min. And what the driver keeps in its pools; if that isn't known, nothing is
 * counted on.
 *
 * Context: may sleep.
 */
u64 umacct_limit_available_of(long pages)
{
	pages -= available_in_cma() + available_in_protected();
	return pooled_beside_available() + (pages > 0 ? (u64)pages << PAGE_SHIFT : 0);
}

/*
 * Each processor keeps pages that were freed there. They are free, MemAvailable leaves them
 * out, and on a machine whose memory is all in use they are a large part of what a server has
 * just given back.
 */
static u64 free_in_lists(void)
{
	unsigned long pages = 0;
	struct zone *zone;
	int nid, i, cpu;

	for_each_online_node(nid) {
		for (i = 0; i < MAX_NR_ZONES; i++) {
			zone = &NODE_DATA(nid)->node_zones[i];
			if (!populated_zone(zone))
				continue;
			for_each_online_cpu(cpu)
				pages += READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
		}
	}
	return (u64)pages << PAGE_SHIFT;
}

/**
 * umacct_limit_room() - what is there for an allocation, where there is a reserve
 *
 * Context: may sleep; umacct_ledger_lock not held.
 */
struct limit_room umacct_limit_room(void)
{
	struct limit_room room = {
		.must_leave = READ_ONCE(umacct_settings.must_leave),
		.reserve = READ_ONCE(umacct_settings.reserve),
	};

	if (!room.must_leave)
		return room;
	room.settled = atomic64_read(&reserve_settled);
	/* What settles from here on is taken for gone, whether or not it is seen as free. */
	smp_rmb();
	room.available = limit_available();
	if (unlikely(READ_ONCE(umacct_settings.guarantees)) &&
	    room.available <= umacct_limit_kept_from(NULL))
		room.in_lists = free_in_lists();
	return room;
}

static bool leaves_reserve(u64 pending, u64 available, struct limit_room *room)
{
	u64 settled;

	/*
	 * Pairs with the barrier in umacct_limit_settle_reserve(): what passes from what is pending
	 * to what is settled is counted twice, not never.
	 */
	smp_rmb();
	settled = atomic64_read(&reserve_settled) - room->settled;
	if (pending + settled + room->leave <= available)
		return true;
	room->outdated = settled;
	return false;
}

static u64 unused(const struct account *account)
{
	u64 keep = READ_ONCE(account->settings.keep);

	return keep - min(keep, account_usage(account));
}

/* The account whose guarantee covers another, which may be itself: guarantees don't nest. */
static const struct account *covering(const struct account *account)
{
	while (account && !READ_ONCE(account->settings.keep))
		account = READ_ONCE(account->parent);
	return account;
}

/**
 * umacct_limit_kept_from() - what guarantees keep of what is available
 * @account: whose memory it is that doesn't count: what is kept for it, it may have. NULL for
 *	none
 *
 * Of memory that was just freed for a guarantee, the part whose free is still under way is
 * not kept yet.
 *
 * Context: umacct_ledger_lock held, an RCU reader, or a reference to @account.
 * Return: bytes.
 */
u64 umacct_limit_kept_from(const struct account *account)
{
	const struct account *own, *at;
	unsigned int i;
	u64 kept = 0;

	if (likely(!READ_ONCE(umacct_settings.guarantees)))
		return 0;
	rcu_read_lock();
	own = covering(account);
	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		at = rcu_dereference(umacct_account_guarantees[i]);
		if (at && at != own)
			kept += unused(at);
	}
	rcu_read_unlock();
	return kept;
}

/* With what it asks for, which is part of its usage: that is what is kept for it. */
static bool is_within_guarantee(const struct account *account)
{
	const struct account *own;
	bool within;

	if (likely(!READ_ONCE(umacct_settings.guarantees)))
		return false;
	rcu_read_lock();
	own = covering(account);
	within = own && account_usage(own) <= READ_ONCE(own->settings.keep);
	rcu_read_unlock();
	return within;
}

/**
 * umacct_limit_take_reserve() - take of what is above the reserve and the guarantees of others
 * @account: whose it is to be; it is part of its usage already
 * @bytes: how much
 * @room: from umacct_limit_room(), a moment ago
 *
 * What is within its own guarantee has only to be there, if only in the processors' lists.
 *
 * Context: any.
 * Return: true if it is there: it counts as pending until umacct_limit_settle_reserve().
 */
bool umacct_limit_take_reserve(struct account *account, u64 bytes, struct limit_room *room)
{
	u64 available = room->available;

	room->outdated = false;
	if (is_within_guarantee(account)) {
		room->leave = 0;
		available += room->in_lists;
	} else {
		room->leave = room->reserve + umacct_limit_kept_from(account);
	}
	/* A request that cannot succeed must not make others fail, not even for a moment. */
	if (bytes > available ||
	    !leaves_reserve(atomic64_read(&reserve_pending) + bytes, available, room))
		return false;
	if (leaves_reserve(atomic64_add_return(bytes, &reserve_pending), available, room))
		return true;
	atomic64_sub(bytes, &reserve_pending);
	return false;
}

/**
 * umacct_limit_settle_reserve() - the driver has what was pending for the reserve, or won't take it
 * @bytes: how much it was
 *
 * Context: any.
 */
void umacct_limit_settle_reserve(u64 bytes)
{
	atomic64_add(bytes, &reserve_settled);
	/* Pairs with the barrier in leaves_reserve(). */
	smp_mb__after_atomic();
	atomic64_sub(bytes, &reserve_pending);
}

/**
 * umacct_limit_penalty() - how long a task waits that allocates above a soft limit
 * @account: whose limit it is
 *
 * Grows with the excess, to the account's longest at an eighth above the limit.
 *
 * Context: umacct_ledger_lock held, or an RCU reader.
 * Return: nanoseconds.
 */
u64 umacct_limit_penalty(const struct account *account)
{
	const u64 soft = READ_ONCE(account->settings.soft), usage = account_usage(account);
	const u64 full = max(soft / FULL_PENALTY_PART, 1ULL);
	const u64 excess = min(usage - min(usage, soft), full);

	return mul_u64_u64_div_u64(READ_ONCE(account->settings.throttle_ns), excess, full);
}

/**
 * umacct_limit_over_soft_locked() - an allocation has brought usage above a soft limit, or to more
 * @account: whose limit it is
 * @alloc: the allocation; its penalty is the longest of those of its accounts
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_limit_over_soft_locked(struct account *account, struct allocation *alloc)
{
	u64 ns = umacct_limit_penalty(account);

	lockdep_assert_held(&umacct_ledger_lock);
	if (ns > alloc->penalty_ns) {
		alloc->penalty_ns = ns;
		alloc->account_id = account->id;
	}
	umacct_limit_check_soft_locked(account, alloc->bytes);
}

/**
 * umacct_limit_uncharge_locked() - undo limit_charge_locked(): the driver has not allocated
 * @account: whom it counts for
 * @bytes: how much it was
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_limit_uncharge_locked(struct account *account, u64 bytes)
{
	lockdep_assert_held(&umacct_ledger_lock);
	for (account = account_nearest_online(account); account; account = account->parent) {
		count_sub(&account->booked, bytes);
		if (unlikely(account->over_soft))
			umacct_limit_check_soft_locked(account, bytes);
	}
}

/**
 * umacct_limit_check_soft_locked() - say so if usage has crossed the soft limit, either way
 * @account: the account
 * @bytes: what was allocated or freed
 *
 * Code that takes or frees managed memory without the lock counts first and then looks at what is
 * stored here; where that came too late, this looks once more.
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_limit_check_soft_locked(struct account *account, u64 bytes)
{
	unsigned int i;

	lockdep_assert_held(&umacct_ledger_lock);
	for (i = 0; i < 2; i++) {
		u64 usage = account_usage(account);
		bool over = usage > account->settings.soft;

		if (over == account->over_soft)
			return;
		WRITE_ONCE(account->over_soft, over);
		if (over)
			account->soft_count++;
		umacct_event_post_locked(over ? UMACCT_EVENT_SOFT_CROSSED :
						UMACCT_EVENT_SOFT_RECOVERED,
					 account, account, bytes, usage, account->settings.soft);
		/* Pairs with the fully ordered addition in chunk.c. */
		smp_mb();
	}
}
