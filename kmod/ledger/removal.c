// SPDX-License-Identifier: GPL-2.0-only
/*
 * The removal of cgroups. There is no notifier for modules; the tracepoint
 * cgroup_rmdir comes when a cgroup is offline for good. On a kernel without it,
 * the accounts are looked through before a reader is told of them.
 */
#include <linux/cgroup.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/lock.h"
#include "ledger/removal.h"
#include "ledger/work.h"

static struct tracepoint *rmdir_tracepoint;
static struct work_struct __rcu *follower;

static void look_work_fn(struct work_struct *work);
static DECLARE_WORK(look_work, look_work_fn);

/*
 * The account of a removed cgroup, freed unless it is referenced. Its settings go; what it holds is
 * its nearest online ancestor's from now on.
 */
static void account_offline_locked(struct account *account)
{
	struct account *to;

	lockdep_assert_held(&umacct_ledger_lock);
	umacct_account_configure_locked(account, &NO_SETTINGS);
	hlist_del_rcu(&account->hash);
	umacct_row_remove_locked(&umacct_account_rows, &account->row);
	WRITE_ONCE(account->online, false);
	account->cgrp = NULL;
	/* Pairs with the barrier in account_add_managed_local(). */
	smp_mb();
	/* Removing cgroups that hold nothing must not interrupt dumps for ever. */
	if (account->booked_local || atomic64_read(&account->managed_local))
		umacct_account_generation = (umacct_account_generation + 1) ?: 1;
	umacct_account_pass_on_local(account);
	to = account_nearest_online(account);
	to->booked_local += account->booked_local;
	to->clients += account->clients;
	account_put(account);
}

/* Return: whether hooks may have been armed for it. */
static bool offline_locked(struct account *account)
{
	const struct account_settings *settings = &account->settings;
	bool hooked = settings->view || settings->charge == UMACCT_CHARGE_ON;

	/* Its clients hold it. */
	account_hold(account);
	account_offline_locked(account);
	umacct_client_offline_locked(account);
	account_put(account);
	return hooked;
}

static void tell_follower(void)
{
	struct work_struct *work;

	rcu_read_lock();
	work = rcu_dereference(follower);
	if (work)
		queue_work(umacct_ledger_work, work);
	rcu_read_unlock();
}

/**
 * umacct_removal_follow() - have work done when settings that hooks serve went with a cgroup
 * @work: the work, or NULL for none; what was set before is not queued after return
 *
 * Context: may sleep; by one at a time.
 */
void umacct_removal_follow(struct work_struct *work)
{
	rcu_assign_pointer(follower, work);
	synchronize_rcu();
}

/*
 * Called with cgroup_mutex held since the cgroup went offline: its memory, and that of
 * its controllers, goes only later. Interrupts are off, but with PREEMPT_RT, where the
 * lock that is held around tracepoints of cgroups leaves them on.
 */
static void cgroup_removed(void *data, struct cgroup *cgrp, const char *path)
{
	struct account *account;
	unsigned long flags;
	bool hooked = false;

	/* Other hierarchies have the same ids. */
	if (cgrp->root != &cgrp_dfl_root)
		return;
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	account = umacct_account_find_locked(cgroup_id(cgrp));
	if (account)
		hooked = offline_locked(account);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	if (hooked)
		tell_follower();
}

static void match_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "cgroup_rmdir"))
		rmdir_tracepoint = tp;
}

static bool cgroup_exists(u64 id)
{
	struct cgroup *cgrp = cgroup_get_from_id(id);

	if (IS_ERR(cgrp))
		return false;
	cgroup_put(cgrp);
	return true;
}

/* A worker is in the initial cgroup namespace. */
static void look_work_fn(struct work_struct *work)
{
	struct account *account;
	bool hooked = false;
	u64 seq = 0, id;

	for (;; cond_resched()) {
		raw_spin_lock_irq(&umacct_ledger_lock);
		account = umacct_account_after_locked(seq);
		if (account) {
			seq = account->row.seq;
			id = account->id;
		}
		raw_spin_unlock_irq(&umacct_ledger_lock);
		if (!account)
			break;
		if (cgroup_exists(id))
			continue;
		raw_spin_lock_irq(&umacct_ledger_lock);
		account = umacct_account_find_locked(id);
		if (account && account->parent)
			hooked |= offline_locked(account);
		raw_spin_unlock_irq(&umacct_ledger_lock);
	}
	if (hooked)
		tell_follower();
}

/**
 * umacct_removal_refresh() - see to it that removed cgroups are not shown
 *
 * Context: may sleep; umacct_ledger_lock not held.
 */
void umacct_removal_refresh(void)
{
	if (rmdir_tracepoint)
		return;
	queue_work(umacct_ledger_work, &look_work);
	flush_work(&look_work);
}

/**
 * umacct_removal_init() - follow the removal of cgroups
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int umacct_removal_init(void)
{
	int err;

	for_each_kernel_tracepoint(match_tracepoint, NULL);
	if (!rmdir_tracepoint) {
		pr_warn("this kernel has no tracepoint cgroup_rmdir: removed cgroups are noticed at the next request\n");
		return 0;
	}
	err = tracepoint_probe_register(rmdir_tracepoint, cgroup_removed, NULL);
	umacct_account_removal_is_traced = !err;
	return err;
}

/**
 * umacct_removal_exit() - undo umacct_removal_init()
 *
 * Context: module exit.
 */
void umacct_removal_exit(void)
{
	if (rmdir_tracepoint) {
		tracepoint_probe_unregister(rmdir_tracepoint, cgroup_removed, NULL);
		tracepoint_synchronize_unregister();
	}
	cancel_work_sync(&look_work);
}
