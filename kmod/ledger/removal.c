// SPDX-License-Identifier: GPL-2.0-only
/*
 * The removal of cgroups. There is no notifier for modules; the tracepoint
 * cgroup_rmdir comes when a cgroup is offline for good.
 */
#include <linux/cgroup.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/client.h"

static struct tracepoint *rmdir_tracepoint;
static struct work_struct __rcu *follower;

/*
 * The account of a removed cgroup, freed unless it is referenced. Its settings go; what it holds is
 * its nearest online ancestor's from now on. Returns whether hooks may have been armed for it.
 */
static bool account_offline_locked(struct account *account)
{
	const bool hooked = account->settings.view ||
			    account->settings.charge == UMACCT_CHARGE_ON;
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

/*
 * Has work done, or none, when settings that hooks serve went with a cgroup. What was set before is
 * not queued after return. May sleep; by one at a time.
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
		hooked = account_offline_locked(account);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	if (hooked)
		tell_follower();
}

static void match_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "cgroup_rmdir"))
		rmdir_tracepoint = tp;
}

/* Follows the removal of cgroups. */
int umacct_removal_init(void)
{
	for_each_kernel_tracepoint(match_tracepoint, NULL);
	if (!rmdir_tracepoint) {
		pr_err("this kernel has no tracepoint cgroup_rmdir, and so does not report removed cgroups\n");
		return -ENODEV;
	}
	return tracepoint_probe_register(rmdir_tracepoint, cgroup_removed, NULL);
}

void umacct_removal_exit(void)
{
	tracepoint_probe_unregister(rmdir_tracepoint, cgroup_removed, NULL);
	tracepoint_synchronize_unregister();
}
