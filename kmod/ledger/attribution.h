/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ATTRIBUTION_H
#define UMACCT_ATTRIBUTION_H

#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "ledger/account.h"
#include "ledger/allocation.h"
#include "ledger/client.h"
#include "ledger/lock.h"
#include "memcg.h"

void umacct_attribution_make(struct allocation *alloc);

/*
 * The cgroup that an allocation counts for. nvidia-uvm works for another process at times, and
 * in threads of its own: it says for which by the active memcg. Where that is the task's own memcg,
 * the task's cgroup counts: a cgroup without the memory controller, or a threaded one, has no memcg
 * of its own, but an ancestor's.
 */
static inline struct cgroup *attribution_cgroup(bool uvm)
{
#ifdef CONFIG_MEMCG
	if (uvm && unlikely(current->active_memcg) && cgroup_subsys_on_dfl(memory_cgrp_subsys) &&
	    &current->active_memcg->css != memcg_css_of_current())
		return account_cgroup(current->active_memcg->css.cgroup);
#endif
	return account_cgroup(rcu_dereference_check(current->cgroups,
						    lockdep_is_held(&umacct_ledger_lock) ||
						    rcu_read_lock_any_held())->dfl_cgrp);
}

/* Does the current task work for a process? */
static inline bool works_for_a_process(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/**
 * attribution_find_locked() - find out whom an allocation counts for
 * @alloc: gets its account and client, with a reference on the latter or, where
 *	there is none, on the former; not the driver's own
 *
 * Without memory, the account stays unknown.
 *
 * Context: process context, may sleep. umacct_ledger_lock is held, and may be given up meanwhile.
 */
static __always_inline void attribution_find_locked(struct allocation *alloc)
	__must_hold(&umacct_ledger_lock)
{
	struct client *client = NULL;

	/* Preemption is off, so the cgroup stays. */
	if (works_for_a_process())
		client = client_find_locked(task_tgid(current),
					    cgroup_id(attribution_cgroup(alloc->uvm)));
	if (likely(client)) {
		atomic_inc(&client->refs);
		alloc->client = client;
		alloc->account = client->account;
		return;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	umacct_attribution_make(alloc);
	raw_spin_lock_irq(&umacct_ledger_lock);
}

/**
 * attribution_lock() - take the lock, and see to it that it is known whom an allocation
 *	counts for
 * @alloc: as attribution_find_locked() has it, unless it is known already
 *
 * Context: process context, may sleep. On return umacct_ledger_lock is held.
 */
static __always_inline void attribution_lock(struct allocation *alloc)
	__acquires(&umacct_ledger_lock)
{
	raw_spin_lock_irq(&umacct_ledger_lock);
	if (!alloc->account && alloc->kind != ALLOCATION_DRIVER)
		attribution_find_locked(alloc);
}

/**
 * attribution_put() - drop the reference of an allocation or a record
 * @account: whom it counts for, or NULL
 * @client: who made it, or NULL
 *
 * Context: umacct_ledger_lock held, or an RCU reader.
 */
static inline void attribution_put(struct account *account, struct client *client)
{
	if (likely(client))
		client_put(client);
	else
		account_put(account);
}

#endif /* UMACCT_ATTRIBUTION_H */
