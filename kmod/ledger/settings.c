// SPDX-License-Identifier: GPL-2.0-only
/*
 * What administrators ask for: machine-wide, and how many accounts want what. Hooks
 * of features that nobody wants are not armed, and accounts that nothing depends on
 * are not looked for before an allocation.
 */
#include "ledger/count.h"
#include "ledger/lock.h"
#include "ledger/settings.h"

struct settings settings;

static void count_if(bool counts, u32 *count, int by)
{
	if (!counts)
		return;
	if (by < 0)
		count_sub(count, 1);
	else
		WRITE_ONCE(*count, *count + 1);
}

static void settings_changed_locked(void)
{
	lockdep_assert_held(&ledger_lock);
	settings.state++;
	WRITE_ONCE(settings.precheck_enabled, settings.hard_limits || settings.reserve ||
					      settings.charging || settings.charge_default);
}

/**
 * settings_count_locked() - count what an account asks for
 * @of: its settings
 * @by: 1 to count them, -1 to take them out
 *
 * Context: ledger_lock held.
 */
void settings_count_locked(const struct account_settings *of, int by)
{
	lockdep_assert_held(&ledger_lock);
	count_if(of->hard != UMACCT_UNLIMITED, &settings.hard_limits, by);
	count_if(of->charge == UMACCT_CHARGE_ON, &settings.charging, by);
	count_if(of->throttle_ns, &settings.throttles, by);
	count_if(of->view, &settings.views, by);
	settings_changed_locked();
}

/**
 * settings_set_reserve() - change how much of MemAvailable must be left
 * @bytes: 0 for none
 *
 * Context: ledger_lock not held.
 */
void settings_set_reserve(u64 bytes)
{
	raw_spin_lock_irq(&ledger_lock);
	WRITE_ONCE(settings.reserve, bytes);
	settings_changed_locked();
	raw_spin_unlock_irq(&ledger_lock);
}

/**
 * settings_set_charge_default() - change what accounts do that neither say nor inherit
 * @on: charge
 *
 * Context: ledger_lock not held. The hooks are to be armed anew.
 */
void settings_set_charge_default(bool on)
{
	raw_spin_lock_irq(&ledger_lock);
	WRITE_ONCE(settings.charge_default, on);
	settings_changed_locked();
	raw_spin_unlock_irq(&ledger_lock);
}
