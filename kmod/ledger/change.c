// SPDX-License-Identifier: GPL-2.0-only
/*
 * How an administrator changes the settings of an account: several at once, and all of them
 * or none.
 */
#include <linux/mm.h>

#include "ledger/account.h"
#include "ledger/change.h"
#include "ledger/event.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/settings.h"

static bool is_above(const struct account *above, const struct account *account)
{
	while (account && account != above)
		account = account->parent;
	return account;
}

/* Is there as much as the reserve and all guarantees together? */
static int check_room_locked(u64 reserve, u64 guarantees, const char **why)
{
	const u64 most = (u64)totalram_pages() << PAGE_SHIFT;

	if (reserve <= most && guarantees <= most - reserve)
		return 0;
	*why = "the guarantees and the reserve would exceed the machine's memory";
	return -ENOSPC;
}

static int check_guarantee_locked(const struct account *account, u64 keep, const char **why)
{
	u64 sum = 0;
	const struct account *at;
	unsigned int i, others = 0;

	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		at = rcu_dereference_protected(umacct_account_guarantees[i],
					       lockdep_is_held(&umacct_ledger_lock));
		if (!at || at == account)
			continue;
		if (is_above(at, account) || is_above(account, at)) {
			*why = "guarantees do not nest, and a cgroup above or below has one";
			return -EINVAL;
		}
		sum += at->settings.keep;
		others++;
	}
	if (others == ACCOUNT_GUARANTEES_MAX) {
		*why = "64 cgroups have a guarantee, which is the maximum";
		return -ENOSPC;
	}
	/* They fit without it: no sum wraps. */
	return check_room_locked(umacct_settings.reserve, max(keep, sum + keep), why);
}

/**
 * umacct_settings_change() - change settings of an account
 * @account: the account
 * @change: what to change
 * @which: set to the setting that is refused
 * @why: set to a sentence if the change is refused
 *
 * Everything is changed, or nothing. Limits below the usage are taken.
 *
 * Context: umacct_ledger_lock not held.
 * Return: 0; -EINVAL if the soft limit would be above the hard one, or a guarantee within another;
 *	-ENOSPC if the machine can't keep all guarantees, -ENOENT if the cgroup was removed.
 */
int umacct_settings_change(struct account *account, const struct settings_change *change,
			   enum setting_id *which, const char **why)
{
	struct account_settings to;
	enum setting_id id;
	int err = 0;

	*which = SETTING_SOFT;
	raw_spin_lock_irq(&umacct_ledger_lock);
	if (!account->online) {
		*why = "the cgroup was just removed";
		err = -ENOENT;
		goto out;
	}
	to = account->settings;
	for (id = 0; id < NR_SETTINGS; id++)
		if (change->mask & BIT(id))
			umacct_setting_write(&to, id, umacct_setting_read(&change->to, id));
	if (to.hard != UMACCT_UNLIMITED && to.soft != UMACCT_UNLIMITED && to.soft > to.hard) {
		*why = "the soft limit would be above the hard limit";
		err = -EINVAL;
		goto out;
	}
	if (to.keep > account->settings.keep) {
		*which = SETTING_KEEP;
		err = check_guarantee_locked(account, to.keep, why);
		if (err)
			goto out;
	}
	umacct_account_configure_locked(account, &to);
	umacct_limit_check_soft_locked(account, 0);
out:
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
	return err;
}

/**
 * umacct_settings_change_reserve() - change how much of what is available must be left
 * @bytes: 0 for none; no more than the machine has
 * @why: set to a sentence if the change is refused
 *
 * Context: umacct_ledger_lock not held.
 * Return: 0, or -ENOSPC if the machine can't keep all guarantees beside it.
 */
int umacct_settings_change_reserve(u64 bytes, const char **why)
{
	const struct account *at;
	u64 guarantees = 0;
	unsigned int i;
	int err = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		at = rcu_dereference_protected(umacct_account_guarantees[i],
					       lockdep_is_held(&umacct_ledger_lock));
		if (at)
			guarantees += at->settings.keep;
	}
	if (bytes > umacct_settings.reserve)
		err = check_room_locked(bytes, guarantees, why);
	if (!err)
		umacct_settings_set_reserve_locked(bytes);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return err;
}
