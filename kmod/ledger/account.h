/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ACCOUNT_H
#define UMACCT_ACCOUNT_H

#include <linux/cgroup.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "ledger/row.h"
#include "ledger/settings.h"
#include "ledger/untold.h"

/**
 * struct account - what the tasks of a cgroup hold
 * @id: the cgroup's
 * @parent: the account of the parent cgroup, NULL for the root's; referenced
 * @usage: bytes held in the whole subtree; with what is under way, where a limit may apply
 * @settings: changed by account_configure_locked() only
 * @effective: the lowest hard limit from here up to the root; see
 *	account_update_locked()
 * @effective_id: the account that sets it
 * @charge_effective: what follows from the settings of this account and its ancestors
 * @settings_at: the state of all settings that the three are worked out from
 * @online: the cgroup was not removed; see account_nearest_online()
 * @over_soft: @usage is above the soft limit, and an event has said so
 * @local: bytes held by tasks of this cgroup, and of removed ones below it
 * @level: the cgroup's depth; the root's is 0
 * @refs: one for being listed, one from each child, client, record, unsent
 *	event and call under way
 * @row: in account_rows, parents before children
 * @cgrp: the cgroup, not referenced; NULL from its removal on
 * @members: its clients
 * @nr_members: how many
 * @untold: see event.c
 * @path: the cgroup's path from the root of the hierarchy
 *
 * The other members are the UMACCT_A_ACCOUNT_* attributes of the same name.
 */
struct account {
	u64 id;
	struct account *parent;
	u64 usage;
	u64 peak;
	struct account_settings settings;
	u64 effective;
	u64 effective_id;
	u64 settings_at;
	bool charge_effective;
	bool online;
	bool over_soft;
	u64 local;
	u64 charged;
	u64 managed;
	u64 metadata;
	u64 allocs;
	u64 frees;
	u64 failures;
	u64 refusals;
	u64 soft_count;
	u64 hard_count;
	u64 reserve_count;
	u64 throttled_ns;
	u64 alloc_time_ns;
	u64 alloc_time_max_ns;
	u32 level;
	u32 clients;
	u32 refs;
	struct cgroup *cgrp;
	struct hlist_node hash;
	struct row row;
	struct list_head members;
	u32 nr_members;
	struct untold untold;
	struct rcu_head rcu;
	char path[];
};

/* Guarded by ledger_lock. */
extern struct account *account_root;
extern struct rows account_rows;

/* Rises whenever what an account held becomes another's; never 0. */
extern u32 account_generation;

/* Set before there is any but the root's account. */
extern bool account_removal_is_told;

/*
 * Deeper cgroups count for their ancestor here: a branch is walked under the lock, and its
 * depth is the tenant's to choose.
 */
#define ACCOUNT_LEVEL_MAX	64

int account_init(void);
int account_make_root(void);
void account_exit(void);
struct account *account_find_locked(u64 id);
struct account *account_after_locked(u64 seq);
struct account *account_nearest_locked(struct cgroup *cgrp);
struct account *account_create(struct cgroup *cgrp);
struct account *account_open(u64 id);
void account_put_locked(struct account *account);
void account_put(struct account *account);
void account_inherit_locked(struct account *account);
void account_configure_locked(struct account *account, const struct account_settings *settings);
void account_offline_locked(struct account *account);
void account_shorten_locked(struct account *account);

/**
 * account_cgroup() - the cgroup whose account counts what is taken in a cgroup
 * @cgrp: of the v2 hierarchy; can't be freed meanwhile
 *
 * Context: any.
 * Return: the cgroup itself, or its ancestor at the deepest level that has accounts.
 */
static inline struct cgroup *account_cgroup(struct cgroup *cgrp)
{
	if (unlikely(cgrp->level > ACCOUNT_LEVEL_MAX))
		cgrp = cgroup_ancestor(cgrp, ACCOUNT_LEVEL_MAX);
	return cgrp;
}

/**
 * account_nearest_online() - whom an account's memory counts for
 * @account: online or not
 *
 * Context: ledger_lock held.
 * Return: the account itself, or its nearest online ancestor.
 */
static inline struct account *account_nearest_online(struct account *account)
{
	while (unlikely(!account->online))
		account = account->parent;
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
static inline void account_update_locked(struct account *account)
{
	if (unlikely(account->settings_at != settings.state))
		account_inherit_locked(account);
}

#endif /* UMACCT_ACCOUNT_H */
