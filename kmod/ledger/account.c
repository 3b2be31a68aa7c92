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
#include "ledger/hash_table.h"
#include "ledger/lock.h"

/* The kernel keeps more for a cgroup than a sixteenth of this. */
#define BYTES_PER_BUCKET	SZ_256K

/* A path must fit into a netlink message with all the rest; longer ones are not told. */
#define ACCOUNT_PATH_MAX	2048

struct account __rcu *umacct_account_guarantees[ACCOUNT_GUARANTEES_MAX];
struct account *umacct_account_root;
struct rows umacct_account_rows;
bool umacct_account_removal_is_traced;
u32 umacct_account_generation = 1;

static struct hash_table account_table;

/**
 * umacct_account_find_locked() - look an account up
 * @id: cgroup id
 *
 * Context: umacct_ledger_lock held.
 * Return: the account, without a reference, or NULL.
 */
struct account *umacct_account_find_locked(u64 id)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	hlist_for_each_entry(account, hash_table_bucket(&account_table, id), hash)
		if (account->id == id)
			return account;
	return NULL;
}

/**
 * umacct_account_after_locked() - the next account, in order of creation
 * @seq: number of the last one's row, 0 for none
 *
 * Context: umacct_ledger_lock held.
 * Return: the account, without a reference, or NULL.
 */
struct account *umacct_account_after_locked(u64 seq)
{
	struct row *row = umacct_row_after_locked(&umacct_account_rows, seq);

	lockdep_assert_held(&umacct_ledger_lock);
	return row ? container_of(row, struct account, row) : NULL;
}

/**
 * umacct_account_get() - look an account up
 * @id: cgroup id
 *
 * Context: an RCU reader.
 * Return: the account with a reference, or NULL. It may be offline already.
 */
struct account *umacct_account_get(u64 id)
{
	struct account *account;

	hlist_for_each_entry_rcu(account, hash_table_bucket(&account_table, id), hash,
				 rcu_read_lock_any_held())
		if (account->id == id)
			return atomic_inc_not_zero(&account->refs) ? account : NULL;
	return NULL;
}

/**
 * umacct_account_free() - the last reference was dropped; see account_put()
 * @account: freed, with those ancestors that only it kept
 *
 * Freeing takes its time, so it is left to RCU.
 *
 * Context: any.
 */
void umacct_account_free(struct account *account)
{
	struct account *parent;

	do {
		parent = account->parent;
		kfree_rcu(account, rcu);
		account = parent;
	} while (account && atomic_dec_and_test(&account->refs));
}

/**
 * umacct_account_held_locked() - what an account holds
 * @account: the account
 * @held: filled in
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_account_held_locked(const struct account *account, struct held *held)
{
	lockdep_assert_held(&umacct_ledger_lock);
	held_read(held, account->booked, account->booked_charged, &account->managed);
	held->local = min(held->usage,
			  account->booked_local + held_count(&account->managed_local));
}

/**
 * umacct_account_pass_on_local() - what an account that is offline holds of managed memory
 *	itself is its nearest online ancestor's
 * @account: the account
 *
 * Context: an RCU reader, or umacct_ledger_lock held.
 */
void umacct_account_pass_on_local(struct account *account)
{
	do {
		s64 bytes = atomic64_xchg(&account->managed_local, 0);

		account = account_nearest_online(account);
		atomic64_add(bytes, &account->managed_local);
		/* As in account_add_managed_local(). */
		smp_mb__after_atomic();
	} while (!READ_ONCE(account->online));
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
	INIT_LIST_HEAD(&account->pending.list);
	atomic_set(&account->refs, 1);
out:
	kfree(path);
	return account;
}

/**
 * umacct_account_inherit_locked() - work out what follows from an account's ancestors; see
 *	account_update_locked()
 * @account: the account
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_account_inherit_locked(struct account *account)
{
	enum umacct_charge_mode charge = UMACCT_CHARGE_INHERIT;
	const struct account *at;

	lockdep_assert_held(&umacct_ledger_lock);
	account->settings_at = umacct_settings.state;
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
	account->charge_effective = charge == UMACCT_CHARGE_INHERIT ?
				    umacct_settings.charge_default : charge == UMACCT_CHARGE_ON;
}

static void list_guarantee_locked(struct account *account, bool has_one)
{
	struct account *from = has_one ? NULL : account;
	unsigned int i;

	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		if (rcu_access_pointer(umacct_account_guarantees[i]) == from) {
			rcu_assign_pointer(umacct_account_guarantees[i], has_one ? account : NULL);
			return;
		}
	}
}

/**
 * umacct_account_configure_locked() - change an account's settings
 * @account: the account
 * @to: all of them; a guarantee that is new is one of ACCOUNT_GUARANTEES_MAX at the most
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_account_configure_locked(struct account *account, const struct account_settings *to)
{
	const struct account_settings from = account->settings;
	enum setting_id id;

	lockdep_assert_held(&umacct_ledger_lock);
	if (!from.keep != !to->keep)
		list_guarantee_locked(account, to->keep);
	/*
	 * The new ones first: hooks look without the lock whether any account asks for something,
	 * and what is asked for before and after must not seem to be asked for by nobody between.
	 */
	umacct_settings_count_locked(to, 1);
	for (id = 0; id < NR_SETTINGS; id++)
		umacct_setting_write(&account->settings, id, umacct_setting_read(to, id));
	umacct_settings_count_locked(&from, -1);
}

static void account_add_locked(struct account *account, struct cgroup *cgrp)
{
	lockdep_assert_held(&umacct_ledger_lock);
	/* Without the tracepoint, its removal would not be noticed. */
	if (umacct_account_removal_is_traced)
		account->cgrp = cgrp;
	if (cgroup_parent(cgrp)) {
		account->parent = umacct_account_find_locked(cgroup_id(cgroup_parent(cgrp)));
		account_hold(account->parent);
	} else {
		umacct_account_root = account;
	}
	account->settings_at = U64_MAX;
	hlist_add_head_rcu(&account->hash, hash_table_bucket(&account_table, account->id));
	umacct_row_add_locked(&umacct_account_rows, &account->row);
}

static bool is_needed_locked(struct cgroup *cgrp)
{
	lockdep_assert_held(&umacct_ledger_lock);
	/* It is cleared first, and account_offline_locked() of removal.c called then. */
	return (data_race(cgrp->self.flags) & CSS_ONLINE) &&
	       !umacct_account_find_locked(cgroup_id(cgrp));
}

/* Has the account of a cgroup made, if it is online; its parent's is there. */
static bool account_make(struct cgroup *cgrp)
{
	struct account *fresh;
	bool needed;

	raw_spin_lock_irq(&umacct_ledger_lock);
	needed = is_needed_locked(cgrp);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	if (!needed)
		return true;
	fresh = account_alloc(cgrp);
	if (!fresh)
		return false;
	raw_spin_lock_irq(&umacct_ledger_lock);
	if (is_needed_locked(cgrp)) {
		account_add_locked(fresh, cgrp);
		fresh = NULL;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	kfree(fresh);
	return true;
}

/**
 * umacct_account_nearest_locked() - the account of a cgroup or of its nearest ancestor that
 *	has one
 * @cgrp: a cgroup of the v2 hierarchy that can't be freed meanwhile
 *
 * Context: umacct_ledger_lock held.
 * Return: the account, without a reference. The root always has one.
 */
struct account *umacct_account_nearest_locked(struct cgroup *cgrp)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	cgrp = account_cgroup(cgrp);
	while (!(account = umacct_account_find_locked(cgroup_id(cgrp))))
		cgrp = cgroup_parent(cgrp);
	return account;
}

/**
 * umacct_account_create() - the account of a cgroup, made if need be
 * @cgrp: a cgroup of the v2 hierarchy that the caller holds, see account_cgroup()
 *
 * Context: may sleep; umacct_ledger_lock not held.
 * Return: the account with a reference, or that of the nearest online ancestor if the
 *	cgroup was removed; NULL if memory ran out.
 */
struct account *umacct_account_create(struct cgroup *cgrp)
{
	struct account *account;
	int level;

	for (level = 0; level <= cgrp->level; level++)
		if (!account_make(cgroup_ancestor(cgrp, level)))
			return NULL;
	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_nearest_locked(cgrp);
	account_hold(account);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return account;
}

/**
 * umacct_account_open() - the account of a cgroup id, made if need be
 * @id: cgroup id
 *
 * Context: may sleep; umacct_ledger_lock not held.
 * Return: the account with a reference; -ENOENT if the caller's cgroup namespace
 *	has no such cgroup, -E2BIG if it is too deep to have one, or -ENOMEM.
 */
struct account *umacct_account_open(u64 id)
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
	account = umacct_account_create(cgrp);
	cgroup_put(cgrp);
	if (account && account->id != id) {
		account_put(account);
		return ERR_PTR(-ENOENT);
	}
	return account ?: ERR_PTR(-ENOMEM);
}

/**
 * umacct_account_shorten_locked() - let go of a removed account's removed ancestors
 * @account: what somebody's memory keeps
 *
 * Of a chain of removed cgroups nobody needs more than the lowest: else a page would keep
 * as many accounts as its tenant nests cgroups.
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_account_shorten_locked(struct account *account)
{
	struct account *from = account->parent, *to;

	lockdep_assert_held(&umacct_ledger_lock);
	if (account->online || from->online)
		return;
	/* What is under way stays in the usage of those that are skipped: nobody looks. */
	to = account_nearest_online(from);
	account_hold(to);
	WRITE_ONCE(account->parent, to);
	account_put(from);
}

/**
 * umacct_account_init() - make the table of accounts
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int umacct_account_init(void)
{
	return umacct_hash_table_init(&account_table, BYTES_PER_BUCKET);
}

/**
 * umacct_account_make_root() - make the root's account
 *
 * Context: module initialisation; it is decided whether the removal of cgroups is told.
 * Return: 0 or an error.
 */
int umacct_account_make_root(void)
{
	struct account *root = umacct_account_create(&cgrp_dfl_root.cgrp);

	if (!root)
		return -ENOMEM;
	account_put(root);
	return 0;
}

/**
 * umacct_account_exit() - free every account
 *
 * Context: module exit; nobody else uses the ledger any more.
 */
void umacct_account_exit(void)
{
	struct account *account;

	do {
		raw_spin_lock_irq(&umacct_ledger_lock);
		account = umacct_account_after_locked(0);
		if (account) {
			umacct_row_remove_locked(&umacct_account_rows, &account->row);
			kfree_rcu(account, rcu);
		}
		raw_spin_unlock_irq(&umacct_ledger_lock);
		cond_resched();
	} while (account);
	umacct_hash_table_exit(&account_table);
}
