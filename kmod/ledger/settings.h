/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_SETTINGS_H
#define UMACCT_SETTINGS_H

#include <linux/types.h>

#include <umacct.h>

/**
 * struct account_settings - what an administrator asks for
 * @soft: bytes or UMACCT_UNLIMITED
 * @hard: bytes or UMACCT_UNLIMITED
 * @throttle_ns: longest delay of one system call above @soft, 0 for none
 * @charge: have the kernel charge what is allocated?
 * @view: see UMACCT_A_ACCOUNT_VIEW
 */
struct account_settings {
	u64 soft;
	u64 hard;
	u64 throttle_ns;
	enum umacct_charge_mode charge;
	bool view;
};

/* What can be set on an account, one by one. */
enum setting_id {
	SETTING_SOFT,
	SETTING_HARD,
	SETTING_THROTTLE,
	SETTING_VIEW,
	SETTING_CHARGE,
	NR_SETTINGS,
};

/**
 * struct setting - where a setting is, and when it asks for something
 * @attr: its UMACCT_A_ACCOUNT_*
 * @offset: in struct account_settings
 * @size: there
 * @asks_from: the smallest value that asks for something to be done
 * @asks_to: the largest
 * @nr_asking: where the accounts that ask are counted; NULL for nowhere
 */
struct setting {
	u16 attr;
	u8 offset;
	u8 size;
	u64 asks_from;
	u64 asks_to;
	u32 *nr_asking;
};

extern const struct setting setting_table[NR_SETTINGS];

/* Nothing is asked for. */
#define NO_SETTINGS	((struct account_settings) {				\
	.soft = UMACCT_UNLIMITED,						\
	.hard = UMACCT_UNLIMITED,						\
})

/**
 * struct settings - what is asked for machine-wide, and by how many accounts
 * @precheck_enabled: an allocation may be refused or charged: its account has to be found
 *	before the driver is asked
 * @charge_default: what accounts do that neither say nor inherit
 * @reserve: bytes of MemAvailable that allocations must leave, 0 for none
 * @hard_limits: accounts that have a hard limit
 * @charging: accounts that say that they are charged
 * @throttles: accounts that have a throttle
 * @views: accounts that ask for a view
 * @state: changes with any setting of any account
 *
 * Guarded by ledger_lock.
 */
struct settings {
	bool precheck_enabled;
	bool charge_default;
	u64 reserve;
	u32 hard_limits;
	u32 charging;
	u32 throttles;
	u32 views;
	u64 state;
};

extern struct settings settings;

u64 setting_read(const struct account_settings *of, enum setting_id id);
void setting_write(struct account_settings *of, enum setting_id id, u64 value);
bool setting_asks(enum setting_id id, u64 value);
void settings_count_locked(const struct account_settings *of, int by);
void settings_set_reserve(u64 bytes);
void settings_set_charge_default(bool on);

#endif /* UMACCT_SETTINGS_H */
