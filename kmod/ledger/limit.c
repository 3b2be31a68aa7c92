// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits. Where one may apply, an allocation is part of the usage of every account from its
 * own up to the root before the driver is asked, and is taken out again if a limit forbids it or
 * the driver fails, as the kernel's page_counter does it. Usage may be above a limit that was
 * lowered; it never gets there by an allocation.
 *
 * The check is limit_charge_locked() in limit.h, and charge() in chunk.c for managed memory;
 * reserve.c has the reserve and guarantees, refusal.c what follows where one of them forbids it.
 */
#include <linux/math64.h>

#include "ledger/account.h"
#include "ledger/count.h"
#include "ledger/event.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/settings.h"

/* Excess at which the penalty is the longest, as a part of the limit. */
#define FULL_PENALTY_PART	8

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
