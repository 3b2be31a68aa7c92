// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading the ledger; see read.h.
 */
#include <linux/minmax.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/reserve.h"
#include "ledger/lock.h"
#include "ledger/read.h"
#include "ledger/settings.h"

/**
 * umacct_read_account() - read an account
 * @id: cgroup id
 * @show: called with it; may not sleep
 * @arg: for @show
 *
 * Context: umacct_ledger_lock not held.
 * Return: what @show returns, or -ENOENT if there is no such account.
 */
int umacct_read_account(u64 id, int (*show)(const struct account *account, void *arg), void *arg)
{
	struct account *account;
	int ret = -ENOENT;

	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_find_locked(id);
	if (account) {
		account_update_locked(account);
		ret = show(account, arg);
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return ret;
}

/**
 * umacct_read_next_account() - read the next account
 * @cursor: number of the last one that was read, 0 for none; goes on if @show returns 0
 * @generation: set to a number that changes when what an account holds becomes another's, also
 *	if there is no account left; may be NULL
 * @show: called with it; may not sleep
 * @arg: for @show
 *
 * Context: umacct_ledger_lock not held.
 * Return: 1; 0 if there is none left; what @show returns if that is less than 0.
 */
int umacct_read_next_account(u64 *cursor, unsigned int *generation,
			     int (*show)(const struct account *account, void *arg), void *arg)
{
	struct account *account;
	int ret = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	if (generation)
		*generation = umacct_account_generation;
	account = umacct_account_after_locked(*cursor);
	if (account) {
		account_update_locked(account);
		ret = show(account, arg) ?: 1;
		if (ret > 0)
			*cursor = account->row.seq;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return ret;
}

/**
 * umacct_read_next_client() - read the next client
 * @cursor: number of the last one that was read, 0 for none; goes on if @show returns 0
 * @show: called with it and with the account that it counts for, unless the client is over; may
 *	not sleep
 * @arg: for @show
 *
 * Context: umacct_ledger_lock not held.
 * Return: 1; 0 if there is none left; what @show returns if that is less than 0.
 */
int umacct_read_next_client(u64 *cursor,
			    int (*show)(const struct client *client,
					const struct account *account, void *arg), void *arg)
{
	struct client *client;
	int ret = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	client = umacct_client_after_locked(*cursor);
	if (client) {
		if (!umacct_client_is_over(client))
			ret = show(client, account_nearest_online(client->account), arg);
		ret = ret ?: 1;
		if (ret > 0)
			*cursor = client->row.seq;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return ret;
}

/**
 * umacct_read_bounds() - read what a cgroup could still have
 * @cgrp: a cgroup of the v2 hierarchy
 * @bounds: filled in
 *
 * Context: an RCU reader; umacct_ledger_lock not held.
 */
void umacct_read_bounds(struct cgroup *cgrp, struct account_bounds *bounds)
{
	struct account *account;

	bounds->view = false;
	bounds->left = UMACCT_UNLIMITED;
	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_nearest_locked(cgrp);
	account_update_locked(account);
	bounds->effective = account->effective;
	bounds->reserve = umacct_settings.reserve + umacct_reserve_kept_from(account);
	for (; account; account = account->parent) {
		const u64 hard = account->settings.hard;

		bounds->view |= account->settings.view;
		if (hard != UMACCT_UNLIMITED)
			bounds->left = min(bounds->left,
					   hard - min(hard, account_usage(account)));
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
}
