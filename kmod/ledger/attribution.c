// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whom an allocation counts for: the account of the cgroup and the client of the
 * process that ask for it. The driver's own counts for nobody.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/sched/signal.h>

#include "ledger/account.h"
#include "ledger/attribution.h"
#include "ledger/client.h"
#include "ledger/lock.h"

/*
 * The cgroup that an allocation counts for. nvidia-uvm's kernel threads work for
 * a process and say for which by the active memcg.
 */
static __always_inline struct cgroup *attribution_cgroup(enum allocation_kind kind)
{
#ifdef CONFIG_MEMCG
	if (kind == ALLOCATION_MANAGED && current->active_memcg &&
	    cgroup_subsys_on_dfl(memory_cgrp_subsys))
		return current->active_memcg->css.cgroup;
#endif
	return rcu_dereference_check(current->cgroups, lockdep_is_held(&ledger_lock))->dfl_cgrp;
}

/* The account, made if need be, with a reference. */
static struct account *attribution_account(enum allocation_kind kind)
{
	struct account *account;
	struct cgroup *cgrp;

	rcu_read_lock();
	cgrp = attribution_cgroup(kind);
	if (!cgroup_tryget(cgrp))
		cgrp = NULL;
	rcu_read_unlock();
	if (!cgrp)
		return NULL;
	account = account_create(cgrp);
	cgroup_put(cgrp);
	return account;
}

static bool works_for_a_process(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/* A first allocation of this process on this account. */
static noinline void attribute_slow(struct allocation *alloc)
{
	struct account *account = attribution_account(alloc->kind);
	struct client *client, *there;

	if (!account)
		return;
	if (!works_for_a_process()) {
		alloc->account = account;
		return;
	}
	client = client_alloc(account);
	if (!client)
		return;
	raw_spin_lock(&ledger_lock);
	/* Other threads of the process may have been here meanwhile. */
	there = client_find_locked(client->pid, account->id);
	if (there) {
		there->refs++;
		client_put_locked(client);
		client = there;
	} else {
		client_add_locked(client);
	}
	alloc->client = client;
	alloc->account = client->account;
	raw_spin_unlock(&ledger_lock);
}

/**
 * attribution_lock() - take the lock, and find out whom an allocation counts for
 * @alloc: gets its account and client, with a reference on the latter or, where
 *	there is none, on the former; unless it has them already
 *
 * Without memory, the account stays unknown.
 *
 * Context: process context, may sleep. On return ledger_lock is held.
 */
void attribution_lock(struct allocation *alloc)
	__acquires(&ledger_lock)
{
	struct client *client = NULL;

	raw_spin_lock(&ledger_lock);
	if (alloc->account || alloc->kind == ALLOCATION_DRIVER)
		return;
	/* Preemption is off, so the cgroup stays. */
	if (works_for_a_process())
		client = client_find_locked(task_tgid(current),
					    cgroup_id(attribution_cgroup(alloc->kind)));
	if (likely(client)) {
		client->refs++;
		alloc->client = client;
		alloc->account = client->account;
		return;
	}
	raw_spin_unlock(&ledger_lock);
	attribute_slow(alloc);
	raw_spin_lock(&ledger_lock);
}
