// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings that administrators made: machine-wide, and how many accounts have each. Hooks
 * of features that are not requested are not armed, and accounts that nothing depends on
 * are not looked for before an allocation.
 */
#include "ledger/base.h"
#include "ledger/settings.h"

struct settings umacct_settings;

const struct setting umacct_setting_table[NR_SETTINGS] = {
	[SETTING_SOFT] = { UMACCT_A_ACCOUNT_SOFT, 0, UMACCT_UNLIMITED - 1 },
	[SETTING_HARD] = { UMACCT_A_ACCOUNT_HARD, 0, UMACCT_UNLIMITED - 1,
			   &umacct_settings.hard_limits },
	[SETTING_KEEP] = { UMACCT_A_ACCOUNT_KEEP, 1, U64_MAX, &umacct_settings.guarantees },
	[SETTING_THROTTLE] = { UMACCT_A_ACCOUNT_THROTTLE, 1, U64_MAX, &umacct_settings.throttles },
	[SETTING_VIEW] = { UMACCT_A_ACCOUNT_VIEW, true, true, &umacct_settings.views },
	[SETTING_CHARGE] = { UMACCT_A_ACCOUNT_CHARGE, UMACCT_CHARGE_ON, UMACCT_CHARGE_ON,
			     &umacct_settings.charging },
};

/* Does a value ask for something to be done? */
bool umacct_setting_asks(enum setting_id id, u64 value)
{
	const struct setting *setting = &umacct_setting_table[id];

	return value >= setting->asks_from && value <= setting->asks_to;
}

static void settings_changed_locked(void)
{
	lockdep_assert_held(&umacct_ledger_lock);
	umacct_settings.state++;
	WRITE_ONCE(umacct_settings.must_leave, umacct_settings.reserve || umacct_settings.guarantees);
	WRITE_ONCE(umacct_settings.precheck_enabled,
		   umacct_settings.hard_limits || umacct_settings.must_leave ||
		   umacct_settings.charging || umacct_settings.charge_default);
}

/* Counts what an account asks for, or takes it out if @by is -1. */
void umacct_settings_count_locked(const struct account_settings *of, int by)
{
	enum setting_id id;
	u32 *count;

	lockdep_assert_held(&umacct_ledger_lock);
	for (id = 0; id < NR_SETTINGS; id++) {
		count = umacct_setting_table[id].nr_asking;
		if (count && umacct_setting_asks(id, of->values[id]))
			WRITE_ONCE(*count, *count + by);
	}
	settings_changed_locked();
}

/* Changes how much of what is available must be left, 0 for none. */
void umacct_settings_set_reserve_locked(u64 bytes)
{
	WRITE_ONCE(umacct_settings.reserve, bytes);
	settings_changed_locked();
}

/* Are accounts charged that neither set it nor inherit it? The hooks are to be armed anew. */
void umacct_settings_set_charge_default(bool on)
{
	raw_spin_lock_irq(&umacct_ledger_lock);
	WRITE_ONCE(umacct_settings.charge_default, on);
	settings_changed_locked();
	raw_spin_unlock_irq(&umacct_ledger_lock);
}
