/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_LIMIT_H
#define UMACCT_LIMIT_H

#include <linux/mm.h>
#include <linux/types.h>

#include "ledger/account.h"
#include "ledger/allocation.h"
#include "ledger/client.h"
#include "ledger/settings.h"

/*
 * Allocations refused for the reserve, and because memory ran out to find out whose they were;
 * guarded by umacct_ledger_lock.
 */
extern u64 umacct_limit_reserve_count;
extern u64 umacct_limit_unattributed_count;

/**
 * struct limit_room - what an allocation may take without falling short of the reserve
 * @must_leave: something must be left
 * @reserve: for the machine's reserve
 * @leave: for all; worked out by umacct_limit_take_reserve()
 * @available: see limit_available(); of a moment ago
 * @in_lists: free pages in the processors' lists, which @available has not got; 0 unless what
 *	is available is what guarantees keep
 * @settled: how much had been pending and no longer was, before that moment
 * @outdated: set by umacct_limit_take_reserve() if it refuses because of what settled since: a
 *	newer look at the memory may allow it
 * @last: nobody looks again; the refusal counts
 */
struct limit_room {
	bool must_leave;
	u64 reserve;
	u64 leave;
	u64 available;
	u64 in_lists;
	u64 settled;
	bool outdated;
	bool last;
};

void umacct_limit_init(void);
u64 umacct_limit_available_of(long pages);
struct limit_room umacct_limit_room(void);
u64 umacct_limit_kept_from(const struct account *account);
bool umacct_limit_take_reserve(struct account *account, u64 bytes, struct limit_room *room);
void umacct_limit_settle_reserve(u64 bytes);
void umacct_limit_refuse_hard_locked(struct allocation *alloc, struct account *limiting);
void umacct_limit_refuse_reserve_locked(struct allocation *alloc, const struct limit_room *room);
void umacct_limit_refuse_impossible_locked(struct allocation *alloc);
u64 umacct_limit_penalty(const struct account *account);
void umacct_limit_over_soft_locked(struct account *account, struct allocation *alloc);
void umacct_limit_uncharge_locked(struct account *account, u64 bytes);
void umacct_limit_check_soft_locked(struct account *account, u64 bytes);

/**
 * limit_available() - how much memory the driver could have; see umacct_limit_available_of()
 *
 * Context: may sleep.
 */
static inline u64 limit_available(void)
{
	return umacct_limit_available_of(si_mem_available());
}

/**
 * limit_is_impossible() - is a request for more than the machine's memory?
 * @bytes: how much
 *
 * It fails in any case, and is never counted, not even for a moment: a program may ask for 2^64
 * bytes, which would wrap the sums of all accounts above its own.
 *
 * Context: any.
 */
static inline bool limit_is_impossible(u64 bytes)
{
	return bytes >> PAGE_SHIFT > totalram_pages();
}

/**
 * limit_charge_locked() - make an allocation part of the usage of its branch, unless a hard
 *	limit forbids it
 * @account: whom it counts for
 * @bytes: how much it is
 *
 * Both this and the code that takes managed memory without the lock count first and then look at
 * what the other has counted: of two requests that do not fit together, one at least is refused.
 *
 * Context: umacct_ledger_lock held.
 * Return: NULL, or the account whose limit forbids it. Nothing of it is counted then.
 */
static __always_inline struct account *limit_charge_locked(struct account *account, u64 bytes)
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
 * @room: from umacct_limit_room(), a moment ago; NULL where there is no reserve
 *
 * If so, it is part of its branch's usage, pending for the reserve until limit_end_locked(),
 * and @alloc says whether to have it charged.
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 * Return: false if it is refused, or if @room is outdated and not the last look: that is no
 *	refusal yet.
 */
static inline bool limit_begin_locked(struct allocation *alloc, struct limit_room *room)
{
	struct account *limiting;

	account_update_locked(alloc->account);
	alloc->charge = alloc->account->charge_effective;
	limiting = limit_charge_locked(alloc->account, alloc->bytes);
	if (unlikely(limiting)) {
		umacct_limit_refuse_hard_locked(alloc, limiting);
		return false;
	}
	if (room && room->must_leave &&
	    !umacct_limit_take_reserve(alloc->account, alloc->bytes, room)) {
		umacct_limit_uncharge_locked(alloc->account, alloc->bytes);
		if (room->last || !room->outdated)
			umacct_limit_refuse_reserve_locked(alloc, room);
		return false;
	}
	alloc->pending_reserve = room && room->must_leave;
	alloc->counted = true;
	return true;
}

/**
 * limit_end_locked() - the driver has made the allocation, or failed
 * @alloc: what limit_begin_locked() said yes to, or was not asked about
 *
 * Context: umacct_ledger_lock held.
 */
static inline void limit_end_locked(struct allocation *alloc)
{
	if (unlikely(alloc->pending_reserve))
		umacct_limit_settle_reserve(alloc->bytes);
}

/**
 * limit_book_locked() - an allocation is made: all that its branch's accounts say of it
 * @alloc: its account is known; its penalty is set
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
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
