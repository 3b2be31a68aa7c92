/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Conditions that refuse an allocation: limits, the reserve and guarantees; the memory available to
 * the driver; and the consequences of a refusal.
 */
#ifndef UMACCT_LIMIT_H
#define UMACCT_LIMIT_H

#include <linux/mm.h>
#include <linux/types.h>

#include <umacct.h>

#include "ledger/account.h"
#include "ledger/client.h"

/* --- what is available ---------------------------------------------------- */

void umacct_available_init(void);
u64 umacct_available_of(long pages);

/* How much memory the driver could have; see umacct_available_of(). May sleep. */
static inline u64 available_now(void)
{
	return umacct_available_of(si_mem_available());
}

/* --- the reserve ---------------------------------------------------------- */

/**
 * struct reserve_room - what an allocation may take without falling short of the reserve
 * @must_leave: something must be left
 * @reserve: for the machine's reserve
 * @bulk: set by the caller for what is large, though it is taken in small pieces
 * @leave: for all; worked out by umacct_reserve_take()
 * @available: see available_now(); of a moment ago
 * @in_lists: free pages in the processors' lists, which @available has not got; 0 unless what
 *	is available is what guarantees keep
 * @settled: how much had been pending and no longer was, before that moment
 * @outdated: set by umacct_reserve_take() if it refuses because of what settled since: a
 *	newer look at the memory may allow it
 * @last: the last check; the refusal counts
 */
struct reserve_room {
	bool must_leave;
	u64 reserve;
	bool bulk;
	u64 leave;
	u64 available;
	u64 in_lists;
	u64 settled;
	bool outdated;
	bool last;
};

/*
 * Maximum number of times that an allocation looks at the available memory: while a task was kept
 * from the processor, the ledger may have changed so that its first look is outdated.
 */
#define RESERVE_LOOKS	4

struct reserve_room umacct_reserve_room(void);
u64 umacct_reserve_kept_from(const struct account *account);
bool umacct_reserve_take(struct account *account, u64 bytes, struct reserve_room *room);
void umacct_reserve_settle(u64 bytes);

/* --- refusals ------------------------------------------------------------- */

/*
 * Allocations refused for the reserve, and because memory ran out to find out whose they were;
 * guarded by umacct_ledger_lock.
 */
extern u64 umacct_refusal_reserve_count;
extern u64 umacct_refusal_unattributed_count;

/* The sums of all records: the UMACCT_A_STATUS_* of the same names. */
struct record_totals {
	u64 driver_usage;
	u64 driver_peak;
	u64 untracked;
	u64 untracked_count;
	u64 stale_count;
	u32 nr;
};

/* Guarded by umacct_ledger_lock. */
extern struct record_totals umacct_record_totals;

void umacct_refusal_hard(struct allocation *alloc, const struct account *limiting);
void umacct_refusal_reserve(struct allocation *alloc, const struct reserve_room *room);
void umacct_refusal_impossible_locked(struct allocation *alloc);
u64 umacct_refusal_report(const struct shortage *shortage);
bool umacct_refusal_unattributed(void);
void umacct_untracked(u64 bytes);

/* --- limits --------------------------------------------------------------- */

u64 umacct_limit_penalty(const struct account *account);
void umacct_limit_over_soft_locked(struct account *account, struct allocation *alloc);
void umacct_limit_sub_locked(struct account *account, u64 bytes);
void umacct_limit_check_soft_locked(struct account *account, u64 bytes);

/*
 * Is a request for more than the machine's memory? It fails in any case, and is never counted, not
 * even for a moment: a program may name 2^64 bytes, which would wrap the sums of all accounts above
 * its own.
 */
static inline bool limit_is_impossible(u64 bytes)
{
	return bytes >> PAGE_SHIFT > totalram_pages();
}

/*
 * Metadata is at most 16 bytes for each page of what was asked for: as much as this part of the machine's
 * memory is for a request of four times as much, which nothing has room for.
 */
#define LIMIT_METADATA_PART	64

/*
 * Makes an allocation part of the usage of its branch, unless a hard limit forbids it: returns
 * NULL, or the account whose limit it is, and nothing of it is counted then. Both this and the code
 * that takes managed memory without the lock count first and then look at what the other has
 * counted: of two requests that do not fit together, one at least is refused.
 */
static __always_inline struct account *limit_add_locked(struct account *account, u64 bytes)
{
	struct account *from = account_nearest_online(account), *at, *undo;

	for (at = from; at; at = at->parent) {
		const u64 hard = at->settings.hard;

		WRITE_ONCE(at->booked, at->booked + bytes);
		if (likely(hard == UMACCT_UNLIMITED))
			continue;
		/* Pairs with the fully ordered addition in chunk.c. */
		smp_mb();
		if (unlikely(account_usage(at) > hard || bytes > hard)) {
			for (undo = from; undo != at->parent; undo = undo->parent)
				WRITE_ONCE(undo->booked, undo->booked - bytes);
			return at;
		}
	}
	return NULL;
}

/**
 * limit_begin_locked() - may this allocation be made?
 * @alloc: its account is known
 * @room: from umacct_reserve_room(), a moment ago; NULL where there is no reserve
 *
 * If so, it is part of its branch's usage, pending for the reserve until limit_end_locked(),
 * and @alloc says whether to have it charged.
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 * Return: false if it is refused, which @alloc says why, or if @room is outdated and not the last look: that is no
 *	refusal yet.
 */
static inline bool limit_begin_locked(struct allocation *alloc, struct reserve_room *room)
{
	struct account *limiting;

	account_update_locked(alloc->account);
	alloc->charge = alloc->account->charge_effective;
	limiting = limit_add_locked(alloc->account, alloc->bytes);
	if (unlikely(limiting)) {
		umacct_refusal_hard(alloc, limiting);
		return false;
	}
	if (room && room->must_leave &&
	    !umacct_reserve_take(alloc->account, alloc->bytes, room)) {
		umacct_limit_sub_locked(alloc->account, alloc->bytes);
		if (room->last || !room->outdated)
			umacct_refusal_reserve(alloc, room);
		return false;
	}
	alloc->pending_reserve = room && room->must_leave;
	alloc->counted = true;
	return true;
}

/* The driver has made the allocation, or failed. */
static inline void limit_end_locked(struct allocation *alloc)
{
	if (unlikely(alloc->pending_reserve))
		umacct_reserve_settle(alloc->bytes);
}

/*
 * An allocation is made: all that its branch's accounts say of it, and its penalty. event_kick()
 * must follow.
 */
static __always_inline void limit_book_locked(struct allocation *alloc)
{
	struct account *account = account_nearest_online(alloc->account);
	const u64 bytes = alloc->counted ? 0 : alloc->bytes, metadata = alloc->metadata;
	const bool system = alloc->kind == ALLOCATION_SYSTEM;
	u64 usage;

	account->booked_local += alloc->bytes;
	do {
		usage = account->booked + bytes;
		WRITE_ONCE(account->booked, usage);
		account->metadata += metadata;
		account->allocs += system;
		usage += managed_bytes(&account->managed);
		peak_raise(&account->peak, usage);
		if (unlikely(usage > account->settings.soft))
			umacct_limit_over_soft_locked(account, alloc);
		account = account->parent;
	} while (account);
}

#endif /* UMACCT_LIMIT_H */
