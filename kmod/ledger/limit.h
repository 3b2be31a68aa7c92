/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_LIMIT_H
#define UMACCT_LIMIT_H

#include <linux/types.h>

#include "ledger/account.h"
#include "ledger/allocation.h"
#include "ledger/client.h"
#include "ledger/settings.h"

/**
 * struct limit_change - what to change about an account
 * @mask: which settings count: a bit for each enum setting_id
 * @to: the settings
 */
struct limit_change {
	unsigned int mask;
	struct account_settings to;
};

/* What an administrator may ask for at most: a stalled task must stay a task. */
#define LIMIT_THROTTLE_MAX_NS	(2ULL * NSEC_PER_SEC)

/* Allocations refused for the reserve; guarded by ledger_lock. */
extern u64 limit_reserve_count;

/**
 * struct limit_room - what an allocation may take without falling short of the reserve
 * @reserve: what must be left, 0 for nothing
 * @available: see limit_available(); of a moment ago
 * @settled: how much had been pending and no longer was, before that moment
 */
struct limit_room {
	u64 reserve;
	u64 available;
	u64 settled;
};

u64 limit_available(void);
struct limit_room limit_room(void);
bool limit_check_hard_locked(struct allocation *alloc);
bool limit_begin_reserve_locked(struct allocation *alloc, const struct limit_room *room);
void limit_over_soft_locked(struct account *account, struct allocation *alloc);
void limit_add_managed_locked(struct account *account, s64 bytes);
void limit_uncharge_locked(const struct allocation *alloc);
void limit_settle_reserve_locked(struct allocation *alloc);
void limit_check_soft_locked(struct account *account, u64 bytes);
int limit_set(struct account *account, const struct limit_change *change, const char **why);

/**
 * limit_charge_locked() - make an allocation part of the usage of its branch
 * @alloc: its account is known; its penalty is set
 *
 * Context: ledger_lock held. event_kick() must follow.
 */
static __always_inline void limit_charge_locked(struct allocation *alloc)
{
	struct account *account = account_nearest_online(alloc->account);
	const u64 bytes = alloc->bytes, metadata = alloc->metadata;
	const bool system = alloc->kind == ALLOCATION_SYSTEM;

	if (unlikely(alloc->kind == ALLOCATION_MANAGED))
		limit_add_managed_locked(account, bytes);
	account->local += bytes;
	for (; account; account = account->parent) {
		account->usage += bytes;
		account->metadata += metadata;
		account->allocs += system;
		if (account->usage > account->peak)
			account->peak = account->usage;
		if (unlikely(account->usage > account->settings.soft))
			limit_over_soft_locked(account, alloc);
	}
	alloc->counted = true;
}

/**
 * limit_begin_locked() - may this allocation be made?
 * @alloc: its account is known
 * @room: from limit_room(), a moment ago; NULL where there is no reserve
 *
 * If so, it is part of its branch's usage, pending for the reserve until limit_end_locked(),
 * and @alloc says whether to have it charged.
 *
 * Context: ledger_lock held. event_kick() must follow.
 * Return: false if it is refused.
 */
static inline bool limit_begin_locked(struct allocation *alloc, const struct limit_room *room)
{
	account_update_locked(alloc->account);
	alloc->charge = alloc->account->charge_effective;
	if (alloc->account->effective != UMACCT_UNLIMITED && !limit_check_hard_locked(alloc))
		return false;
	if (room && room->reserve && !limit_begin_reserve_locked(alloc, room))
		return false;
	limit_charge_locked(alloc);
	return true;
}

/**
 * limit_end_locked() - the driver has made the allocation, or failed
 * @alloc: what limit_begin_locked() said yes to, or was not asked about
 *
 * Context: ledger_lock held.
 */
static inline void limit_end_locked(struct allocation *alloc)
{
	if (unlikely(alloc->pending_reserve))
		limit_settle_reserve_locked(alloc);
}

#endif /* UMACCT_LIMIT_H */
