// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whom an allocation counts for: the account of the cgroup and the client of the
 * process that ask for it. The driver's own counts for nobody. Which cgroup that is says
 * attribution_cgroup() in attribution.h; what the driver's own is, kind_for_caller() in
 * hooks/adapter.h.
 */
#include <linux/cgroup.h>

#include "ledger/account.h"
#include "ledger/attribution.h"
#include "ledger/client.h"
#include "ledger/lock.h"

/* The account if it is there, with a reference. */
static struct account *attribution_account_there(bool uvm)
{
	struct account *account;

	raw_spin_lock_irq(&umacct_ledger_lock);
	/* Preemption is off, so the cgroup stays. */
	account = umacct_account_find_locked(cgroup_id(attribution_cgroup(uvm)));
	if (account)
		account_hold(account);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return account;
}

/* The account, made if need be, with a reference. */
static struct account *attribution_account(bool uvm)
{
	struct account *account = attribution_account_there(uvm);
	struct cgroup *cgrp;

	/* A driver's own thread has no client to find it by, each time. */
	if (account)
		return account;
	rcu_read_lock();
	cgrp = attribution_cgroup(uvm);
	if (!cgroup_tryget(cgrp))
		cgrp = NULL;
	rcu_read_unlock();
	if (!cgrp)
		return NULL;
	account = umacct_account_create(cgrp);
	cgroup_put(cgrp);
	return account;
}

/**
 * umacct_attribution_make() - see whom an allocation counts for that is its process's first on
 *	an account
 * @alloc: as attribution_find_locked() has it
 *
 * Context: process context, may sleep; umacct_ledger_lock not held.
 */
void umacct_attribution_make(struct allocation *alloc)
{
	struct account *account = attribution_account(alloc->uvm);
	struct client *client, *there;

	if (!account)
		return;
	if (!works_for_a_process()) {
		alloc->account = account;
		return;
	}
	client = umacct_client_alloc(account);
	if (!client)
		return;
	raw_spin_lock_irq(&umacct_ledger_lock);
	/* Other threads of the process may have been here meanwhile. */
	there = client_find_locked(client->pid, account->id);
	if (there) {
		atomic_inc(&there->refs);
		client_put(client);
		client = there;
	} else {
		umacct_client_add_locked(client);
	}
	alloc->client = client;
	alloc->account = client->account;
	raw_spin_unlock_irq(&umacct_ledger_lock);
}
