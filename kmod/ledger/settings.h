/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_SETTINGS_H
#define UMACCT_SETTINGS_H

#include <linux/types.h>

#include <umacct.h>

/* Settings of an account. */
enum setting_id {
	SETTING_SOFT,
	SETTING_HARD,
	SETTING_KEEP,
	SETTING_THROTTLE,
	SETTING_VIEW,
	SETTING_CHARGE,
	NR_SETTINGS,
};

/**
 * struct account_settings - what an administrator asks for
 * @soft: bytes or UMACCT_UNLIMITED
 * @hard: bytes or UMACCT_UNLIMITED
 * @keep: bytes that are kept from others until they are used, 0 for none
 * @throttle_ns: longest delay of one system call above @soft, 0 for none
 * @view: see UMACCT_A_ACCOUNT_VIEW
 * @charge: have the kernel charge what is allocated? An enum umacct_charge_mode
 * @values: all of these, by enum setting_id
 */
struct account_settings {
	union {
		struct {
			u64 soft;
			u64 hard;
			u64 keep;
			u64 throttle_ns;
			u64 view;
			u64 charge;
		};
		u64 values[NR_SETTINGS];
	};
};

/**
 * struct setting - when a setting asks for something
 * @attr: its UMACCT_A_ACCOUNT_*
 * @asks_from: the smallest value that asks for something to be done
 * @asks_to: the largest
 * @nr_asking: where the accounts that ask are counted; NULL for nowhere
 */
struct setting {
	u16 attr;
	u64 asks_from;
	u64 asks_to;
	u32 *nr_asking;
};

extern const struct setting umacct_setting_table[NR_SETTINGS];

/* Nothing is asked for. */
#define NO_SETTINGS	((struct account_settings) {				\
	.soft = UMACCT_UNLIMITED,						\
	.hard = UMACCT_UNLIMITED,						\
})

/**
 * struct settings - what is asked for machine-wide, and by how many accounts
 * @precheck_enabled: an allocation may be refused or charged: its account has to be found
 *	before the driver is asked
 * @charge_default: whether accounts are charged that neither set charging nor inherit it
 * @must_leave: allocations must leave something, for the reserve or for guarantees
 * @reserve: bytes of what is available, see umacct_available_of(), that allocations must
 *	leave, 0 for none
 * @hard_limits: accounts that have a hard limit
 * @charging: accounts that say that they are charged
 * @guarantees: accounts that have a guarantee
 * @throttles: accounts that have a throttle
 * @views: accounts that ask for a view
 * @state: changes with any setting of any account
 *
 * Guarded by umacct_ledger_lock.
 */
struct settings {
	bool precheck_enabled;
	bool charge_default;
	bool must_leave;
	u64 reserve;
	u32 hard_limits;
	u32 charging;
	u32 guarantees;
	u32 throttles;
	u32 views;
	u64 state;
};

extern struct settings umacct_settings;

bool umacct_setting_asks(enum setting_id id, u64 value);
void umacct_settings_count_locked(const struct account_settings *of, int by);
void umacct_settings_set_reserve_locked(u64 bytes);
void umacct_settings_set_charge_default(bool on);

#endif /* UMACCT_SETTINGS_H */
