// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts: one for each cgroup that ever held driver memory or has a limit, and
 * for each of its ancestors.
 *
 * An account doesn't pin its cgroup. When the cgroup is removed, the account's
 * settings go with it, and what it still holds is handed to the nearest online
 * ancestor, as the kernel's own controllers reparent what they have charged.
 *
 * An account is added only while its cgroup is online, under the lock under which
 * the removal of the cgroup takes it away: so the account of a cgroup that is online
 * has the accounts of all ancestors above it.
 */
#include <linux/cgroup.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ledger/account.h"
#include "ledger/count.h"
#include "ledger/lock.h"
#include "ledger/table.h"

/* The kernel keeps more for a cgroup than a sixteenth of this. */
#define BYTES_PER_BUCKET	SZ_256K

/* A path must fit into a netlink message with all the rest; longer ones are not told. */
#define ACCOUNT_PATH_MAX	2048

struct account *account_root;
struct rows account_rows;
bool account_removal_is_told;
u32 account_generation = 1;

static struct table account_table;

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
	hlist_for_each_entry(account, table_bucket(&account_table, id), hash)
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
	raw_spin_lock_irq(&ledger_lock);
	account_put_locked(account);
	raw_spin_unlock_irq(&ledger_lock);
}

static struct account *account_alloc(struct cgroup *cgrp)
{
	char *path = kmalloc(ACCOUNT_PATH_MAX, GFP_KERNEL);
	struct account *account;
	size_t size;
	int len;

	if (!path)
		return NULL;
	/* Cgroups of the v2 hierarchy can't be renamed, so the path stays right. */
	len = cgroup_path(cgrp, path, ACCOUNT_PATH_MAX);
	if (len < 0 || len >= ACCOUNT_PATH_MAX)
		strscpy(path, "(path too long)", ACCOUNT_PATH_MAX);
	size = strlen(path) + 1;
	account = kzalloc(struct_size(account, path, size), GFP_KERNEL);
	if (!account)
		goto out;
	memcpy(account->path, path, size);
	account->id = cgroup_id(cgrp);
	account->level = cgrp->level;
	account->settings = NO_SETTINGS;
	account->online = true;
	INIT_LIST_HEAD(&account->members);
	INIT_LIST_HEAD(&account->untold.list);
	account->refs = 1;
out:
	kfree(path);
	return account;
}

/**
 * account_inherit_locked() - work out what follows from an account's ancestors; see
 *	account_update_locked()
 * @account: the account
 *
 * Context: ledger_lock held.
 */
void account_inherit_locked(struct account *account)
{
	enum umacct_charge_mode charge = UMACCT_CHARGE_INHERIT;
	const struct account *at;

	lockdep_assert_held(&ledger_lock);
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

static void account_add_locked(struct account *account, struct cgroup *cgrp)
{
	lockdep_assert_held(&ledger_lock);
	/* Nobody may be left to say that it goes. */
	if (account_removal_is_told)
		account->cgrp = cgrp;
	if (cgroup_parent(cgrp)) {
		account->parent = account_find_locked(cgroup_id(cgroup_parent(cgrp)));
		account->parent->refs++;
	} else {
		account_root = account;
	}
	account->settings_at = U64_MAX;
	hlist_add_head(&account->hash, table_bucket(&account_table, account->id));
	row_add_locked(&account_rows, &account->row);
}

static bool is_needed_locked(struct cgroup *cgrp)
{
	lockdep_assert_held(&ledger_lock);
	/* It is cleared first, and account_offline_locked() called then. */
	return (data_race(cgrp->self.flags) & CSS_ONLINE) &&
	       !account_find_locked(cgroup_id(cgrp));
}

/* Has the account of a cgroup made, if it is online; its parent's is there. */
static bool account_make(struct cgroup *cgrp)
{
	struct account *fresh;
	bool needed;

	raw_spin_lock_irq(&ledger_lock);
	needed = is_needed_locked(cgrp);
	raw_spin_unlock_irq(&ledger_lock);
	if (!needed)
		return true;
	fresh = account_alloc(cgrp);
	if (!fresh)
		return false;
	raw_spin_lock_irq(&ledger_lock);
	if (is_needed_locked(cgrp)) {
		account_add_locked(fresh, cgrp);
		fresh = NULL;
	}
	raw_spin_unlock_irq(&ledger_lock);
	kfree(fresh);
	return true;
}

/**
 * account_nearest_locked() - the account of a cgroup or of its nearest ancestor that
 *	has one
 * @cgrp: a cgroup of the v2 hierarchy that can't be freed meanwhile
 *
 * Context: ledger_lock held.
 * Return: the account, without a reference. The root always has one.
 */
struct account *account_nearest_locked(struct cgroup *cgrp)
{
	struct account *account;

	lockdep_assert_held(&ledger_lock);
	cgrp = account_cgroup(cgrp);
	while (!(account = account_find_locked(cgroup_id(cgrp))))
		cgrp = cgroup_parent(cgrp);
	return account;
}

/**
 * account_create() - the account of a cgroup, made if need be
 * @cgrp: a cgroup of the v2 hierarchy that the caller holds, see account_cgroup()
 *
 * Context: may sleep; ledger_lock not held.
 * Return: the account with a reference, or that of the nearest online ancestor if the
 *	cgroup was removed; NULL if memory ran out.
 */
struct account *account_create(struct cgroup *cgrp)
{
	struct account *account;
	int level;

	for (level = 0; level <= cgrp->level; level++)
		if (!account_make(cgroup_ancestor(cgrp, level)))
			return NULL;
	raw_spin_lock_irq(&ledger_lock);
	account = account_nearest_locked(cgrp);
	account->refs++;
	raw_spin_unlock_irq(&ledger_lock);
	return account;
}

/**
 * account_open() - the account of a cgroup id, made if need be
 * @id: cgroup id
 *
 * Context: may sleep; ledger_lock not held.
 * Return: the account with a reference; -ENOENT if the caller's cgroup namespace
 *	has no such cgroup, -E2BIG if it is too deep to have one, or -ENOMEM.
 */
struct account *account_open(u64 id)
{
	struct account *account;
	struct cgroup *cgrp;

	cgrp = cgroup_get_from_id(id);
	if (IS_ERR(cgrp))
		return ERR_CAST(cgrp);
	if (account_cgroup(cgrp) != cgrp) {
		cgroup_put(cgrp);
		return ERR_PTR(-E2BIG);
	}
	account = account_create(cgrp);
	cgroup_put(cgrp);
	if (account && account->id != id) {
		account_put(account);
		return ERR_PTR(-ENOENT);
	}
	return account ?: ERR_PTR(-ENOMEM);
}

/**
 * account_offline_locked() - a cgroup was removed
 * @account: its account, which is online; freed unless it is referenced
 *
 * Its settings go; what it holds is its nearest online ancestor's from now on.
 *
 * Context: ledger_lock held.
 */
void account_offline_locked(struct account *account)
{
	struct account *to;

	lockdep_assert_held(&ledger_lock);
	account_configure_locked(account, &NO_SETTINGS);
	hlist_del(&account->hash);
	row_remove_locked(&account_rows, &account->row);
	account->online = false;
	account->cgrp = NULL;
	to = account_nearest_online(account);
	/* Who removes cgroups that hold nothing keeps no reader from coming to an end. */
	if (account->local)
		account_generation = (account_generation + 1) ?: 1;
	to->local += account->local;
	to->clients += account->clients;
	account_put_locked(account);
}

/**
 * account_shorten_locked() - let go of a removed account's removed ancestors
 * @account: what somebody's memory keeps
 *
 * Of a chain of removed cgroups nobody needs more than the lowest: else a page would keep
 * as many accounts as its tenant nests cgroups.
 *
 * Context: ledger_lock held.
 */
void account_shorten_locked(struct account *account)
{
	struct account *from = account->parent;

	lockdep_assert_held(&ledger_lock);
	if (account->online || from->online)
		return;
	/* What is under way stays in the usage of those that are skipped: nobody looks. */
	account->parent = account_nearest_online(from);
	account->parent->refs++;
	account_put_locked(from);
}

/**
 * account_init() - make the table of accounts
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int account_init(void)
{
	return table_init(&account_table, BYTES_PER_BUCKET);
}

/**
 * account_make_root() - make the root's account
 *
 * Context: module initialisation; it is decided whether the removal of cgroups is told.
 * Return: 0 or an error.
 */
int account_make_root(void)
{
	struct account *root = account_create(&cgrp_dfl_root.cgrp);

	if (!root)
		return -ENOMEM;
	account_put(root);
	return 0;
}

/**
 * account_exit() - free every account
 *
 * Context: module exit; nobody else uses the ledger any more.
 */
void account_exit(void)
{
	struct account *account;

	do {
		raw_spin_lock_irq(&ledger_lock);
		account = account_after_locked(0);
		if (account) {
			row_remove_locked(&account_rows, &account->row);
			kfree_rcu(account, rcu);
		}
		raw_spin_unlock_irq(&ledger_lock);
		cond_resched();
	} while (account);
	table_exit(&account_table);
}
