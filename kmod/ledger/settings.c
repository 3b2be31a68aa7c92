// SPDX-License-Identifier: GPL-2.0-only
/*
 * What administrators ask for: machine-wide, and how many accounts want what. Hooks
 * of features that nobody wants are not armed, and accounts that nothing depends on
 * are not looked for before an allocation.
 */
#include "ledger/count.h"
#include "ledger/lock.h"
#include "ledger/settings.h"

struct settings umacct_settings;

#define SETTING(member)						\
	.offset = offsetof(struct account_settings, member),	\
	.size = sizeof_field(struct account_settings, member)

const struct setting umacct_setting_table[NR_SETTINGS] = {
	[SETTING_SOFT] = { UMACCT_A_ACCOUNT_SOFT, SETTING(soft),
			   0, UMACCT_UNLIMITED - 1 },
	[SETTING_HARD] = { UMACCT_A_ACCOUNT_HARD, SETTING(hard),
			   0, UMACCT_UNLIMITED - 1, &umacct_settings.hard_limits },
	[SETTING_KEEP] = { UMACCT_A_ACCOUNT_KEEP, SETTING(keep),
			   1, U64_MAX, &umacct_settings.guarantees },
	[SETTING_THROTTLE] = { UMACCT_A_ACCOUNT_THROTTLE, SETTING(throttle_ns),
			       1, U64_MAX, &umacct_settings.throttles },
	[SETTING_VIEW] = { UMACCT_A_ACCOUNT_VIEW, SETTING(view),
			   true, true, &umacct_settings.views },
	[SETTING_CHARGE] = { UMACCT_A_ACCOUNT_CHARGE, SETTING(charge),
			     UMACCT_CHARGE_ON, UMACCT_CHARGE_ON, &umacct_settings.charging },
};

/**
 * umacct_setting_read() - one of the settings
 * @of: all of them
 * @id: which
 *
 * Context: any.
 */
u64 umacct_setting_read(const struct account_settings *of, enum setting_id id)
{
	const void *at = (const void *)of + umacct_setting_table[id].offset;

	switch (umacct_setting_table[id].size) {
	case sizeof(u64):
		return *(const u64 *)at;
	case sizeof(u32):
		return *(const u32 *)at;
	default:
		return *(const u8 *)at;
	}
}

/**
 * umacct_setting_write() - change one of the settings
 * @of: all of them
 * @id: which
 * @value: of its range
 *
 * They are read without the lock, too: see chunk.c.
 *
 * Context: any.
 */
void umacct_setting_write(struct account_settings *of, enum setting_id id, u64 value)
{
	void *at = (void *)of + umacct_setting_table[id].offset;

	switch (umacct_setting_table[id].size) {
	case sizeof(u64):
		WRITE_ONCE(*(u64 *)at, value);
		break;
	case sizeof(u32):
		WRITE_ONCE(*(u32 *)at, value);
		break;
	default:
		WRITE_ONCE(*(u8 *)at, value);
		break;
	}
}

/**
 * umacct_setting_asks() - does a value ask for something to be done?
 * @id: of which setting
 * @value: the value
 *
 * Context: any.
 */
bool umacct_setting_asks(enum setting_id id, u64 value)
{
	const struct setting *setting = &umacct_setting_table[id];

	return value >= setting->asks_from && value <= setting->asks_to;
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
	lockdep_assert_held(&umacct_ledger_lock);
	umacct_settings.state++;
	WRITE_ONCE(umacct_settings.must_leave, umacct_settings.reserve || umacct_settings.guarantees);
	WRITE_ONCE(umacct_settings.precheck_enabled,
		   umacct_settings.hard_limits || umacct_settings.must_leave ||
		   umacct_settings.charging || umacct_settings.charge_default);
}

/**
 * umacct_settings_count_locked() - count what an account asks for
 * @of: its settings
 * @by: 1 to count them, -1 to take them out
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_settings_count_locked(const struct account_settings *of, int by)
{
	enum setting_id id;

	lockdep_assert_held(&umacct_ledger_lock);
	for (id = 0; id < NR_SETTINGS; id++)
		if (umacct_setting_table[id].nr_asking &&
		    umacct_setting_asks(id, umacct_setting_read(of, id)))
			add(umacct_setting_table[id].nr_asking, by);
	settings_changed_locked();
}

/**
 * umacct_settings_set_reserve_locked() - change how much of what is available must be left
 * @bytes: 0 for none
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_settings_set_reserve_locked(u64 bytes)
{
	WRITE_ONCE(umacct_settings.reserve, bytes);
	settings_changed_locked();
}

/**
 * umacct_settings_set_charge_default() - are accounts charged that neither set it nor inherit it?
 * @on: charge
 *
 * Context: umacct_ledger_lock not held. The hooks are to be armed anew.
 */
void umacct_settings_set_charge_default(bool on)
{
	raw_spin_lock_irq(&umacct_ledger_lock);
	WRITE_ONCE(umacct_settings.charge_default, on);
	settings_changed_locked();
	raw_spin_unlock_irq(&umacct_ledger_lock);
}
