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

#define SETTING(member)						\
	.offset = offsetof(struct account_settings, member),	\
	.size = sizeof_field(struct account_settings, member)

const struct setting setting_table[NR_SETTINGS] = {
	[SETTING_SOFT] = { UMACCT_A_ACCOUNT_SOFT, SETTING(soft),
			   0, UMACCT_UNLIMITED - 1 },
	[SETTING_HARD] = { UMACCT_A_ACCOUNT_HARD, SETTING(hard),
			   0, UMACCT_UNLIMITED - 1, &settings.hard_limits },
	[SETTING_THROTTLE] = { UMACCT_A_ACCOUNT_THROTTLE, SETTING(throttle_ns),
			       1, U64_MAX, &settings.throttles },
	[SETTING_VIEW] = { UMACCT_A_ACCOUNT_VIEW, SETTING(view),
			   true, true, &settings.views },
	[SETTING_CHARGE] = { UMACCT_A_ACCOUNT_CHARGE, SETTING(charge),
			     UMACCT_CHARGE_ON, UMACCT_CHARGE_ON, &settings.charging },
};

/**
 * setting_read() - one of the settings
 * @of: all of them
 * @id: which
 *
 * Context: any.
 */
u64 setting_read(const struct account_settings *of, enum setting_id id)
{
	const void *at = (const void *)of + setting_table[id].offset;

	switch (setting_table[id].size) {
	case sizeof(u64):
		return *(const u64 *)at;
	case sizeof(u32):
		return *(const u32 *)at;
	default:
		return *(const u8 *)at;
	}
}

/**
 * setting_write() - change one of the settings
 * @of: all of them
 * @id: which
 * @value: of its range
 *
 * Context: any.
 */
void setting_write(struct account_settings *of, enum setting_id id, u64 value)
{
	void *at = (void *)of + setting_table[id].offset;

	switch (setting_table[id].size) {
	case sizeof(u64):
		*(u64 *)at = value;
		break;
	case sizeof(u32):
		*(u32 *)at = value;
		break;
	default:
		*(u8 *)at = value;
		break;
	}
}

/**
 * setting_asks() - does a value ask for something to be done?
 * @id: of which setting
 * @value: the value
 *
 * Context: any.
 */
bool setting_asks(enum setting_id id, u64 value)
{
	return value >= setting_table[id].asks_from && value <= setting_table[id].asks_to;
}

static void add(u32 *count, int by)
{
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
	enum setting_id id;

	lockdep_assert_held(&ledger_lock);
	for (id = 0; id < NR_SETTINGS; id++)
		if (setting_table[id].nr_asking && setting_asks(id, setting_read(of, id)))
			add(setting_table[id].nr_asking, by);
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
