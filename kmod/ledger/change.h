/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CHANGE_H
#define UMACCT_CHANGE_H

#include "ledger/account.h"
#include "ledger/settings.h"

/**
 * struct settings_change - what to change about an account
 * @mask: which settings count: a bit for each enum setting_id
 * @to: the settings
 */
struct settings_change {
	unsigned int mask;
	struct account_settings to;
};

int umacct_settings_change(struct account *account, const struct settings_change *change,
			   enum setting_id *which, const char **why);
int umacct_settings_change_reserve(u64 bytes, const char **why);

#endif /* UMACCT_CHANGE_H */
