// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits. Where one may apply, an allocation is part of the usage of every account from its
 * own up to the root before the driver is asked, and is taken out again if a limit forbids it or
 * the driver fails, as the kernel's page_counter does it. Usage may be above a limit that was
 * lowered; it never gets there by an allocation.
 *
 * The check is limit_add_locked() in limit.h, and usage_add() in chunk.c for managed memory.
 */
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/time64.h>
#include <linux/vmstat.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/limit.h"
#include "ledger/settings.h"
#include "memcg.h"
#include "pools.h"

/* --- what is available ---------------------------------------------------- */

/*
 * How much memory the driver could have: what the kernel says is available, less what the driver
 * can't get of that, and what it keeps itself.
 */

/*
 * Memory in the driver's pools that MemAvailable lacks: from 595.99 on, a shrinker of the driver's
 * reports it to the kernel.
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
 * Upper bound of the memory that MemAvailable counts although memory.min protects it: all page
 * cache and reclaimable kernel objects may be in those cgroups.
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

/* Sees what doesn't change. */
void umacct_available_init(void)
{
	int nid, zone;

	for_each_online_node(nid)
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			cma_areas += zone_cma_pages(&NODE_DATA(nid)->node_zones[zone]);
}

/*
 * Upper bound of the memory for movable pages that MemAvailable counts: its free pages, and page cache.
 * How much page cache lies there isn't known: no more than there is, and no more than is in use of the
 * CMA areas. After a kexec with handover there are such pages without any area.
 */
static unsigned long available_in_cma(void)
{
	unsigned long areas = cma_areas, free = global_zone_page_state(NR_FREE_CMA_PAGES);

	if (likely(!areas))
		return free;
	return free + min(cache_pages(), areas - min(areas, free));
}

/*
 * How many bytes the driver could have of the @pages that si_mem_available() says just now. Without
 * what is in CMA areas: the driver's pages can't be moved, so they are not taken from there.
 * Without page cache that cgroups keep by memory.min. And what the driver keeps in its pools; if
 * that isn't known, nothing is counted on. May sleep.
 */
u64 umacct_available_of(long pages)
{
	pages -= available_in_cma() + available_in_protected();
	return pooled_beside_available() + (pages > 0 ? (u64)pages << PAGE_SHIFT : 0);
}

/* --- the reserve ---------------------------------------------------------- */

/*
 * The reserve, and guarantees: what an allocation has to leave, of what is available.
 */

/*
 * Bytes that the driver is allocating just now, where there is a reserve; and how many ever
 * were, and no longer are: an allocation that looked at the memory before still saw it as free.
 */
static atomic64_t reserve_pending;
static atomic64_t reserve_settled;

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

/*
 * Looks how much there is for an allocation, where there is a reserve. May sleep; not under
 * umacct_ledger_lock.
 */
struct reserve_room umacct_reserve_room(void)
{
	struct reserve_room room = {
		.must_leave = READ_ONCE(umacct_settings.must_leave),
		.reserve = READ_ONCE(umacct_settings.reserve),
	};

	if (!room.must_leave)
		return room;
	room.settled = atomic64_read(&reserve_settled);
	/*
	 * Allocations that settle from here on count as gone, whether or not MemAvailable shows it.
	 */
	smp_rmb();
	room.available = available_now();
	if (unlikely(READ_ONCE(umacct_settings.guarantees)) &&
	    room.available <= umacct_reserve_kept_from(NULL))
		room.in_lists = free_in_lists();
	return room;
}

/*
 * A request of 1 MiB, with the driver's metadata for it, may take of the reserve, down to half of
 * it: a client opens the device, a server loads a kernel, a desktop gets a surface, although
 * others have taken all that is above the reserve.
 */
#define SMALL	(SZ_1M + SZ_64K)

static u64 reserve_for(u64 bytes, const struct reserve_room *room)
{
	return bytes <= SMALL && !room->bulk ? room->reserve / 2 : room->reserve;
}

static bool leaves_reserve(u64 pending, u64 available, struct reserve_room *room)
{
	u64 settled;

	/*
	 * Pairs with the barrier in umacct_reserve_settle(): what passes from what is pending
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

/*
 * The memory that guarantees keep of what is available, but for the one of @account, or of an account above
 * it. Of memory that was just freed for a guarantee, the part whose free is still under way is not
 * kept yet.
 */
u64 umacct_reserve_kept_from(const struct account *account)
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

/* Is an account within its guarantee? Its usage has the request already. */
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
 * umacct_reserve_take() - take of what is above the reserve and the guarantees of others
 * @account: the account; its usage includes the bytes already
 * @bytes: how much
 * @room: from umacct_reserve_room(), a moment ago
 *
 * What is within its own guarantee has only to be there, if only in the processors' lists.
 *
 * Context: any.
 * Return: true if it is there: it counts as pending until umacct_reserve_settle().
 */
bool umacct_reserve_take(struct account *account, u64 bytes, struct reserve_room *room)
{
	u64 available = room->available;

	room->outdated = false;
	if (is_within_guarantee(account)) {
		room->leave = 0;
		available += room->in_lists;
	} else {
		room->leave = reserve_for(bytes, room) + umacct_reserve_kept_from(account);
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

/* The driver has what was pending for the reserve, or won't take it. */
void umacct_reserve_settle(u64 bytes)
{
	atomic64_add(bytes, &reserve_settled);
	/* Pairs with the barrier in leaves_reserve(). */
	smp_mb__after_atomic();
	atomic64_sub(bytes, &reserve_pending);
}

/* --- refusals ------------------------------------------------------------- */

/*
 * Requests that got no memory: refused by a limit or for the reserve, or failed by the driver.
 *
 * The resource manager asks again for what it did not get, in smaller pages and rounded up anew, so
 * only the end of the call that the task is in shows whether the request failed: the hooks keep what
 * was refused until then, see way_out.c. Then it counts, and is an event.
 */

/*
 * Each failing request makes NVIDIA's driver hold locks that others wait for, and write to the
 * kernel's log. The tasks of an account with more failures in a second wait after each.
 */
#define FREE_IN_A_SECOND	256
#define PENALTY_NS		(5 * NSEC_PER_MSEC)

u64 umacct_refusal_reserve_count;
u64 umacct_refusal_unattributed_count;
struct record_totals umacct_record_totals;

/* @alloc: its account is known. */
static struct shortage shortage_of(const struct allocation *alloc, enum umacct_event_type type)
{
	u64 block = max_t(u64, alloc->page_size >> PAGE_SHIFT, 1);
	u64 pages = alloc->pages ?: alloc->bytes >> PAGE_SHIFT;

	return (struct shortage) {
		.type = type,
		.account_id = alloc->account->id,
		.bytes = alloc->bytes,
		.pages = round_up(pages, block),
		.block = block,
	};
}

/*
 * Notes that the hard limit of @limiting forbids an allocation. For RCU readers, or under
 * umacct_ledger_lock.
 */
void umacct_refusal_hard(struct allocation *alloc, const struct account *limiting)
{
	alloc->shortage = shortage_of(alloc, UMACCT_EVENT_HARD_REFUSED);
	alloc->shortage.limit_id = limiting->id;
	alloc->shortage.usage = account_usage(limiting);
	alloc->shortage.limit = READ_ONCE(limiting->settings.hard);
}

/* Notes that the reserve forbids an allocation. */
void umacct_refusal_reserve(struct allocation *alloc, const struct reserve_room *room)
{
	alloc->shortage = shortage_of(alloc, UMACCT_EVENT_RESERVE_REFUSED);
	alloc->shortage.usage = room->available;
	alloc->shortage.limit = room->leave;
}

/*
 * Notes it if a hard limit, too, forbids a request for more than the machine's memory, which is in
 * no usage.
 */
void umacct_refusal_impossible_locked(struct allocation *alloc)
{
	struct account *at;

	lockdep_assert_held(&umacct_ledger_lock);
	for (at = account_nearest_online(alloc->account); at; at = at->parent) {
		if (alloc->bytes > at->settings.hard) {
			umacct_refusal_hard(alloc, at);
			return;
		}
	}
}

static u64 penalty_locked(struct account *account)
{
	if (time_after(jiffies, account->short_since + HZ)) {
		account->short_since = jiffies;
		account->short_lately = 0;
	}
	return ++account->short_lately > FREE_IN_A_SECOND ? PENALTY_NS : 0;
}

/*
 * A request of the current task got no memory. If the account is gone, what there is of it counts
 * for the account whose limit it was; if there is neither, no event could be sent. Returns how
 * many nanoseconds the task is to wait, once it holds no lock.
 */
u64 umacct_refusal_report(const struct shortage *shortage)
{
	const bool failed = shortage->type == UMACCT_EVENT_FAILED;
	const bool reserve = shortage->type == UMACCT_EVENT_RESERVE_REFUSED;
	struct account *account, *limiting = NULL, *at;
	u64 ns = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_find_locked(shortage->account_id);
	if (shortage->limit_id)
		limiting = umacct_account_find_locked(shortage->limit_id);
	if (!account)
		account = limiting;
	if (!account)
		goto out;
	for (at = account; at; at = at->parent) {
		at->failed += failed;
		at->refusals += !failed;
		at->reserve_count += reserve;
	}
	umacct_refusal_reserve_count += reserve;
	if (limiting)
		limiting->hard_count++;
	umacct_event_post_locked(shortage->type, account, limiting, shortage->bytes,
				 shortage->usage, shortage->limit);
	ns = penalty_locked(account);
out:
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
	return ns;
}

/*
 * Memory ran out to find out whose an allocation is. It would escape limits: if any can apply it is
 * refused, otherwise umacct_untracked() must follow once it is made. May sleep.
 */
bool umacct_refusal_unattributed(void)
{
	bool refused;

	raw_spin_lock_irq(&umacct_ledger_lock);
	refused = umacct_settings.precheck_enabled;
	umacct_refusal_unattributed_count += refused;
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return refused;
}

/* An allocation is made that can't be recorded, for want of memory. May sleep. */
void umacct_untracked(u64 bytes)
{
	raw_spin_lock_irq(&umacct_ledger_lock);
	umacct_record_totals.untracked += bytes;
	umacct_record_totals.untracked_count++;
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/* --- limits --------------------------------------------------------------- */

/* Excess at which the penalty is the longest, as a part of the limit. */
#define FULL_PENALTY_PART	8

/*
 * How many nanoseconds a task waits that allocates above a soft limit. Grows with the excess, to
 * the account's longest at an eighth above the limit. For RCU readers, or under umacct_ledger_lock.
 */
u64 umacct_limit_penalty(const struct account *account)
{
	const u64 soft = READ_ONCE(account->settings.soft), usage = account_usage(account);
	const u64 full = max(soft / FULL_PENALTY_PART, 1ULL);
	const u64 excess = min(usage - min(usage, soft), full);

	return mul_u64_u64_div_u64(READ_ONCE(account->settings.throttle_ns), excess, full);
}

/*
 * An allocation has brought usage above a soft limit, or to more; its penalty is the longest of
 * those of its accounts. event_kick() must follow.
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

/* Undoes limit_add_locked(): the driver has not allocated. event_kick() must follow. */
void umacct_limit_sub_locked(struct account *account, u64 bytes)
{
	lockdep_assert_held(&umacct_ledger_lock);
	for (account = account_nearest_online(account); account; account = account->parent) {
		count_sub(&account->booked, bytes);
		if (unlikely(account->over_soft))
			umacct_limit_check_soft_locked(account, bytes);
	}
}

/*
 * Says so if usage has crossed the soft limit, either way. Code that takes or frees managed memory
 * without the lock counts first and then looks at what is stored here; where that came too late,
 * this looks once more. event_kick() must follow.
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
