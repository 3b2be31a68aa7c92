/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_LIMIT_H
#define UMACCT_LIMIT_H

#include <linux/mm.h>
#include <linux/types.h>

#include "ledger/account.h"
#include "ledger/allocation.h"
#include "ledger/refusal.h"
#include "ledger/reserve.h"

u64 umacct_limit_penalty(const struct account *account);
void umacct_limit_over_soft_locked(struct account *account, struct allocation *alloc);
void umacct_limit_uncharge_locked(struct account *account, u64 bytes);
void umacct_limit_check_soft_locked(struct account *account, u64 bytes);

/**
 * limit_is_impossible() - is a request for more than the machine's memory?
 * @bytes: how much
 *
 * It fails in any case, and is never counted, not even for a moment: a program may name 2^64 bytes,
 * which would wrap the sums of all accounts above its own. nv_alloc_pages() takes a number of pages
 * of 32 bits, which can't.
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
 * @room: from umacct_reserve_room(), a moment ago; NULL where there is no reserve
 *
 * If so, it is part of its branch's usage, pending for the reserve until limit_end_locked(),
 * and @alloc says whether to have it charged.
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 * Return: false if it is refused, or if @room is outdated and not the last look: that is no
 *	refusal yet.
 */
static inline bool limit_begin_locked(struct allocation *alloc, struct reserve_room *room)
{
	struct account *limiting;

	account_update_locked(alloc->account);
	alloc->charge = alloc->account->charge_effective;
	limiting = limit_charge_locked(alloc->account, alloc->bytes);
	if (unlikely(limiting)) {
		umacct_refuse_hard_locked(alloc, limiting);
		return false;
	}
	if (room && room->must_leave &&
	    !umacct_reserve_take(alloc->account, alloc->bytes, room)) {
		umacct_limit_uncharge_locked(alloc->account, alloc->bytes);
		if (room->last || !room->outdated)
			umacct_refuse_reserve_locked(alloc, room);
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
		umacct_reserve_settle(alloc->bytes);
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
