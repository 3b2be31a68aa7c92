// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts: one for each cgroup that ever held driver memory or has a limit, and
 * for each of its ancestors.
 *
 * An account doesn't pin its cgroup. When the cgroup is removed, the account's
 * limits go with it, and what it still holds is handed to the nearest online
 * ancestor, as the kernel's own controllers reparent what they have charged. There
 * is no notifier of removal for modules: the tracepoint cgroup_rmdir takes the cgroup
 * away from its account, and asks for a look at all accounts, soon.
 */
#include <linux/cgroup.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "ledger/account.h"
#include "ledger/lock.h"

#define ACCOUNT_HASH_BITS	12

/* A path must fit into a netlink message with all the rest; longer ones are not told. */
#define ACCOUNT_PATH_MAX	2048

/* Removals come in groups; one look for all of them. */
#define REMOVAL_DELAY		msecs_to_jiffies(20)

struct account *account_root;
struct rows account_rows;

static DEFINE_HASHTABLE(account_hash, ACCOUNT_HASH_BITS);

/* Serialises creation, so that a parent is always there before its children. */
static DEFINE_MUTEX(create_mutex);

static struct tracepoint *rmdir_tracepoint;

static void removal_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(removal_work, removal_work_fn);

/*
 * Called with interrupts off, and with cgroup_mutex held since the cgroup went
 * offline: its memory, and that of its controllers, goes only later.
 */
static void cgroup_removed(void *data, struct cgroup *cgrp, const char *path)
{
	struct account *account;

	raw_spin_lock(&ledger_lock);
	account = account_find_locked(cgroup_id(cgrp));
	if (account)
		account->cgrp = NULL;
	raw_spin_unlock(&ledger_lock);
	queue_delayed_work(system_wq, &removal_work, REMOVAL_DELAY);
}

static void match_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "cgroup_rmdir"))
		rmdir_tracepoint = tp;
}

/**
 * account_find_locked() - look an account up
 * @id: cgroup id
 *
 * Context: ledger_lock held.
 * Return: the account, without a reference, or NULL.
 */
struct account *account_find_locked(u64 id)
{
	struct account *account;

	lockdep_assert_held(&ledger_lock);
	hash_for_each_possible(account_hash, account, hash, id)
		if (account->id == id)
			return account;
	return NULL;
}

/**
 * account_after_locked() - the next account, in order of creation
 * @seq: number of the last one's row, 0 for none
 *
 * Context: ledger_lock held.
 * Return: the account, without a reference, or NULL.
 */
struct account *account_after_locked(u64 seq)
{
	struct row *row = row_after_locked(&account_rows, seq);

	lockdep_assert_held(&ledger_lock);
	return row ? container_of(row, struct account, row) : NULL;
}

/**
 * account_nearest_online() - whom an account's memory counts for
 * @account: online or not
 *
 * Context: ledger_lock held.
 * Return: the account itself, or its nearest online ancestor.
 */
struct account *account_nearest_online(struct account *account)
{
	while (unlikely(!account->online))
		account = account->parent;
	return account;
}

/**
 * account_put_locked() - drop a reference
 * @account: the account; freed if this was the last one, with those ancestors
 *	that only it kept
 *
 * Freeing takes its time, so it is left to RCU.
 *
 * Context: ledger_lock held.
 */
void account_put_locked(struct account *account)
{
	lockdep_assert_held(&ledger_lock);
	while (account && !--account->refs) {
		struct account *parent = account->parent;

		kfree_rcu(account, rcu);
		account = parent;
	}
}

/**
 * account_put() - drop a reference
 * @account: the account
 *
 * Context: ledger_lock not held.
 */
void account_put(struct account *account)
{
	raw_spin_lock(&ledger_lock);
	account_put_locked(account);
	raw_spin_unlock(&ledger_lock);
}

static struct account *account_alloc(struct cgroup *cgrp)
{
	char *path = kmalloc(ACCOUNT_PATH_MAX, GFP_KERNEL);
	struct account *account;
	int len;

	if (!path)
		return NULL;
	/* Cgroups of the v2 hierarchy can't be renamed, so the path stays right. */
	len = cgroup_path(cgrp, path, ACCOUNT_PATH_MAX);
	if (len < 0 || len >= ACCOUNT_PATH_MAX)
		strscpy(path, "(path too long)", ACCOUNT_PATH_MAX);
	account = kzalloc(struct_size(account, path, strlen(path) + 1), GFP_KERNEL);
	if (!account)
		goto out;
	strcpy(account->path, path);
	account->id = cgroup_id(cgrp);
	account->level = cgrp->level;
	account->settings = NO_SETTINGS;
	account->online = true;
	account->refs = 1;
out:
	kfree(path);
	return account;
}

/**
 * account_update_locked() - work out what follows from an account's ancestors, if
 *	any setting has changed since that was done last
 * @account: the account
 *
 * So a change of settings costs no walk over all accounts.
 *
 * Context: ledger_lock held.
 */
void account_update_locked(struct account *account)
{
	enum umacct_charge_mode charge = UMACCT_CHARGE_INHERIT;
	const struct account *at;

	lockdep_assert_held(&ledger_lock);
	if (likely(account->settings_at == settings.state))
		return;
	account->settings_at = settings.state;
	account->effective = UMACCT_UNLIMITED;
	for (at = account; at; at = at->parent) {
		/* Of equal limits the highest counts. */
		if (at->settings.hard <= account->effective) {
			account->effective = at->settings.hard;
			account->effective_id = at->id;
		}
		if (charge == UMACCT_CHARGE_INHERIT)
			charge = at->settings.charge;
	}
	account->charge_effective = charge == UMACCT_CHARGE_INHERIT ? settings.charge_default :
								      charge == UMACCT_CHARGE_ON;
}

/**
 * account_configure_locked() - change an account's settings
 * @account: the account
 * @to: all of them
 *
 * Context: ledger_lock held.
 */
void account_configure_locked(struct account *account, const struct account_settings *to)
{
	lockdep_assert_held(&ledger_lock);
	settings_count_locked(&account->settings, -1);
	account->settings = *to;
	settings_count_locked(&account->settings, 1);
}

static void account_add_locked(struct account *account, struct account *parent,
			       struct cgroup *cgrp)
{
	lockdep_assert_held(&ledger_lock);
	/* Once it is offline, nobody may be left to say that it goes. */
	if (rmdir_tracepoint && (cgrp->self.flags & CSS_ONLINE))
		account->cgrp = cgrp;
	account->parent = parent;
	if (parent)
		parent->refs++;
	account->settings_at = U64_MAX;
	hash_add(account_hash, &account->hash, account->id);
	row_add_locked(&account_rows, &account->row);
}

/**
 * account_create() - the account of a cgroup, made if need be
 * @cgrp: a cgroup of the v2 hierarchy that the caller holds
 *
 * Context: may sleep; ledger_lock not held.
 * Return: the account with a reference, or NULL if memory ran out.
 */
struct account *account_create(struct cgroup *cgrp)
{
	struct account *account = NULL, *parent = NULL, *fresh;
	int level;

	mutex_lock(&create_mutex);
	for (level = 0; level <= cgrp->level; level++) {
		struct cgroup *at = cgroup_ancestor(cgrp, level);

		raw_spin_lock(&ledger_lock);
		account = account_find_locked(cgroup_id(at));
		if (account && level == cgrp->level)
			account->refs++;
		raw_spin_unlock(&ledger_lock);
		if (!account) {
			fresh = account_alloc(at);
			if (!fresh)
				break;
			raw_spin_lock(&ledger_lock);
			account_add_locked(fresh, parent, at);
			if (level == cgrp->level)
				fresh->refs++;
			raw_spin_unlock(&ledger_lock);
			account = fresh;
		}
		/* Removing an account takes the mutex too, so it stays. */
		parent = account;
	}
	mutex_unlock(&create_mutex);
	return account;
}

/**
 * account_open() - the account of a cgroup id, made if need be
 * @id: cgroup id
 *
 * Context: may sleep; ledger_lock not held.
 * Return: the account with a reference; -ENOENT if the caller's cgroup namespace
 *	has no such cgroup, or -ENOMEM.
 */
struct account *account_open(u64 id)
{
	struct account *account;
	struct cgroup *cgrp;

	cgrp = cgroup_get_from_id(id);
	if (IS_ERR(cgrp))
		return ERR_CAST(cgrp);
	account = account_create(cgrp);
	/* Its removal may have been before there was an account to see it. */
	if (!(READ_ONCE(cgrp->self.flags) & CSS_ONLINE))
		queue_delayed_work(system_wq, &removal_work, 0);
	cgroup_put(cgrp);
	return account ?: ERR_PTR(-ENOMEM);
}

static bool cgroup_exists(u64 id)
{
	struct cgroup *cgrp = cgroup_get_from_id(id);

	if (IS_ERR(cgrp))
		return false;
	cgroup_put(cgrp);
	return true;
}

static void account_offline_locked(struct account *account)
{
	struct account *to;

	lockdep_assert_held(&ledger_lock);
	account_configure_locked(account, &NO_SETTINGS);
	hash_del(&account->hash);
	row_remove_locked(&account_rows, &account->row);
	account->online = false;
	to = account_nearest_online(account);
	to->local += account->local;
	to->local_managed += account->local_managed;
	to->clients += account->clients;
	account_put_locked(account);
}

/* Hands on what removed cgroups hold. A worker is in the initial cgroup namespace. */
static void removal_work_fn(struct work_struct *work)
{
	struct account *account;
	u64 seq = 0;

	/* Accounts leave the list here only. */
	mutex_lock(&create_mutex);
	for (;;) {
		raw_spin_lock(&ledger_lock);
		account = account_after_locked(seq);
		raw_spin_unlock(&ledger_lock);
		if (!account)
			break;
		seq = account->row.seq;
		if (account == account_root || cgroup_exists(account->id))
			continue;
		raw_spin_lock(&ledger_lock);
		account_offline_locked(account);
		raw_spin_unlock(&ledger_lock);
	}
	mutex_unlock(&create_mutex);
}

/**
 * account_refresh() - see to it that removed cgroups are not shown
 *
 * Context: may sleep; ledger_lock not held.
 */
void account_refresh(void)
{
	if (!rmdir_tracepoint)
		queue_delayed_work(system_wq, &removal_work, 0);
	flush_delayed_work(&removal_work);
}

/**
 * account_init() - make the root's account and follow the removal of cgroups
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int account_init(void)
{
	int err;

	for_each_kernel_tracepoint(match_tracepoint, NULL);
	account_root = account_create(&cgrp_dfl_root.cgrp);
	if (!account_root)
		return -ENOMEM;
	if (!rmdir_tracepoint) {
		pr_warn("this kernel has no tracepoint cgroup_rmdir: removed cgroups are noticed when somebody looks\n");
		return 0;
	}
	err = tracepoint_probe_register(rmdir_tracepoint, cgroup_removed, NULL);
	if (err) {
		rmdir_tracepoint = NULL;
		account_put(account_root);
		account_exit();
	}
	return err;
}

/**
 * account_exit() - undo account_init() and free every account
 *
 * Context: module exit; nobody else uses the ledger any more.
 */
void account_exit(void)
{
	struct account *account;

	if (rmdir_tracepoint) {
		tracepoint_probe_unregister(rmdir_tracepoint, cgroup_removed, NULL);
		tracepoint_synchronize_unregister();
	}
	cancel_delayed_work_sync(&removal_work);
	raw_spin_lock(&ledger_lock);
	while ((account = account_after_locked(0))) {
		row_remove_locked(&account_rows, &account->row);
		kfree_rcu(account, rcu);
	}
	raw_spin_unlock(&ledger_lock);
}
