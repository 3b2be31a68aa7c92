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
#include "ledger/base.h"

/* The kernel keeps more for a cgroup than a sixteenth of this. */
#define BYTES_PER_BUCKET	SZ_256K

/* A path must fit into a netlink message with all the rest; longer ones are left out. */
#define ACCOUNT_PATH_MAX	2048

struct account __rcu *umacct_account_guarantees[ACCOUNT_GUARANTEES_MAX];
struct account *umacct_account_root;
struct rows umacct_account_rows;
u32 umacct_account_generation = 1;

static struct hash_table account_table;

/* Finds the account of a cgroup id, without a reference, or NULL. */
struct account *umacct_account_find_locked(u64 id)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	hlist_for_each_entry(account, hash_table_bucket(&account_table, id), hash)
		if (account->id == id)
			return account;
	return NULL;
}

/*
 * The next account behind the row of that number, in order of creation, without a reference, or
 * NULL.
 */
struct account *umacct_account_after_locked(u64 seq)
{
	struct row *row = umacct_row_after_locked(&umacct_account_rows, seq);

	lockdep_assert_held(&umacct_ledger_lock);
	return row ? container_of(row, struct account, row) : NULL;
}

/*
 * Finds the account of a cgroup id, with a reference, or NULL. It may be offline already. For RCU
 * readers.
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

/*
 * Frees an account whose last reference was dropped, with those ancestors that only it kept.
 * Freeing takes its time, so it is left to RCU.
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

/* Reads what an account holds. */
void umacct_account_held_locked(const struct account *account, struct held *held)
{
	lockdep_assert_held(&umacct_ledger_lock);
	held_read(held, account->booked, account->booked_charged, &account->managed);
	held->local = min(held->usage,
			  account->booked_local + held_count(&account->managed_local));
}

/*
 * Passes what an account that is offline holds of managed memory itself on to its nearest online
 * ancestor. For RCU readers, or under umacct_ledger_lock.
 */
void umacct_account_pass_on_local(struct account *account)
{
	do {
		s64 bytes = atomic64_xchg(&account->managed_local, 0);

		account = account_nearest_online(account);
		atomic64_add(bytes, &account->managed_local);
		/* See account_add_managed_local(). */
		smp_mb__after_atomic();
	} while (!READ_ONCE(account->online));
}

static struct account *account_alloc(struct cgroup *cgrp)
{
	char *path = kmalloc(ACCOUNT_PATH_MAX, GFP_LEDGER);
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
	/* It stays for as long as memory of the cgroup is held, also after that is removed. */
	account = kzalloc(struct_size(account, path, size), GFP_LEDGER | __GFP_ACCOUNT);
	/* See record_alloc(). */
	if (unlikely(!account) && !READ_ONCE(umacct_settings.precheck_enabled))
		account = kzalloc(struct_size(account, path, size), GFP_LEDGER);
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

/* Works out what follows from an account's ancestors; see account_update_locked(). */
void umacct_account_inherit_locked(struct account *account)
{
	enum umacct_charge_mode charge = UMACCT_CHARGE_INHERIT;
	const struct account *at;

	lockdep_assert_held(&umacct_ledger_lock);
	account->settings_at = umacct_settings.state;
	account->effective = UMACCT_UNLIMITED;
	for (at = account; at; at = at->parent) {
		/* The highest of equal limits counts. */
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

/*
 * Changes all settings of an account; a guarantee that is new is one of ACCOUNT_GUARANTEES_MAX at
 * the most.
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
	 * and a setting that is requested before and after must be counted in between, too.
	 */
	umacct_settings_count_locked(to, 1);
	/* They are read without the lock, too: see chunk.c. */
	for (id = 0; id < NR_SETTINGS; id++)
		WRITE_ONCE(account->settings.values[id], to->values[id]);
	umacct_settings_count_locked(&from, -1);
	/* A new limit may be what is exceeded now. */
	WRITE_ONCE(account->over_by_fault, false);
}

static void account_add_locked(struct account *account, struct cgroup *cgrp)
{
	lockdep_assert_held(&umacct_ledger_lock);
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

/*
 * Finds the account of a cgroup, which can't be freed meanwhile, or of its nearest ancestor that
 * has one, as the root always has. Without a reference.
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

/*
 * Finds the account of a cgroup that the caller holds, see account_cgroup(), and makes it if need
 * be. Returns it with a reference, or that of the nearest online ancestor if the cgroup was
 * removed; NULL if memory ran out. May sleep.
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

/*
 * Finds the account of a cgroup id, and makes it if need be. Returns it with a reference; -ENOENT
 * if the caller's cgroup namespace has no such cgroup, -E2BIG if it is too deep to have one, or
 * -ENOMEM. May sleep.
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

/*
 * Lets go of a removed account's removed ancestors. Only the lowest of a chain of removed cgroups
 * is needed: otherwise a page would keep as many accounts as its tenant nests cgroups.
 */
void umacct_account_shorten_locked(struct account *account)
{
	struct account *from = account->parent, *to;

	lockdep_assert_held(&umacct_ledger_lock);
	if (account->online || from->online)
		return;
	/* Allocations under way stay in the usage of skipped accounts, which is not read. */
	to = account_nearest_online(from);
	account_hold(to);
	WRITE_ONCE(account->parent, to);
	account_put(from);
}

/* Makes the table of accounts. */
int umacct_account_init(void)
{
	return umacct_hash_table_init(&account_table, BYTES_PER_BUCKET);
}

/* Makes the root's account, when it is decided whether the removal of cgroups is reported. */
int umacct_account_make_root(void)
{
	struct account *root = umacct_account_create(&cgrp_dfl_root.cgrp);

	if (!root)
		return -ENOMEM;
	account_put(root);
	return 0;
}

/* Frees every account; the ledger has no other user any more. */
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
