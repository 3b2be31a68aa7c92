/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ACCOUNT_H
#define UMACCT_ACCOUNT_H

#include <linux/atomic.h>
#include <linux/cgroup.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "ledger/base.h"
#include "ledger/settings.h"

/**
 * struct account - what the tasks of a cgroup hold
 * @id: the cgroup's
 * @parent: the account of the parent cgroup, NULL for the root's; referenced
 * @booked: bytes held in the whole subtree but for managed memory; with what is under way,
 *	where a limit may apply
 * @booked_local: the part of @booked that tasks of this cgroup hold, and of removed ones
 *	below it
 * @booked_charged: the part of @booked that the kernel's memory controller sees
 * @managed: what is held of managed memory in the whole subtree, with what is under way
 * @managed_local: the part of @managed that tasks of this cgroup hold, and of removed ones
 *	below it. Where the cgroup was removed it is
 *	on its way to another account; see account_add_managed_local()
 * @settings: changed by umacct_account_configure_locked() only
 * @effective: the lowest hard limit from here up to the root; see
 *	account_update_locked()
 * @effective_id: the account that sets it
 * @charge_effective: what follows from the settings of this account and its ancestors
 * @settings_at: the state of all settings that the three are worked out from
 * @online: the cgroup was not removed; see account_nearest_online()
 * @over_soft: the usage is above the soft limit, and an event has said so
 * @over_by_fault: a fault of a GPU took the usage above the hard limit, see chunk.c; guarded by
 *	nothing
 * @short_since: when it began to be counted, in ticks, and
 * @short_lately: how many requests got no memory since; see refusal.c
 * @level: the cgroup's depth; the root's is 0
 * @refs: one for being listed, one from each child, client, record, unsent
 *	event and call under way
 * @row: in umacct_account_rows, parents before children
 * @cgrp: the cgroup, not referenced; NULL from its removal on
 * @members: its clients
 * @nr_members: how many
 * @pending: see event.c
 * @path: the cgroup's path from the root of the hierarchy
 *
 * The other members are the UMACCT_A_ACCOUNT_* attributes of the same name. All are guarded by
 * umacct_ledger_lock but @managed, @managed_local, @peak and @refs.
 */
struct account {
	u64 id;
	struct account *parent;
	u64 booked;
	struct managed managed;
	u64 peak;
	struct account_settings settings;
	u64 effective;
	u64 effective_id;
	u64 settings_at;
	bool charge_effective;
	bool online;
	bool over_soft;
	bool over_by_fault;
	u64 booked_local;
	u64 booked_charged;
	atomic64_t managed_local;
	u64 metadata;
	u64 pinned;
	u64 allocs;
	u64 frees;
	u64 failures;
	u64 failed;
	u64 refusals;
	u64 soft_count;
	u64 hard_count;
	u64 reserve_count;
	u64 throttled_ns;
	u64 alloc_time_ns;
	u64 alloc_time_max_ns;
	unsigned long short_since;
	u32 short_lately;
	u32 level;
	u32 clients;
	atomic_t refs;
	struct cgroup *cgrp;
	struct hlist_node hash;
	struct row row;
	struct list_head members;
	u32 nr_members;
	struct pending pending;
	struct rcu_head rcu;
	char path[];
};

/* Guarded by umacct_ledger_lock. */
extern struct account *umacct_account_root;
extern struct rows umacct_account_rows;

/*
 * The accounts that have a guarantee, with gaps; changed under umacct_ledger_lock. Each
 * allocation of others looks at them.
 */
#define ACCOUNT_GUARANTEES_MAX	64
extern struct account __rcu *umacct_account_guarantees[ACCOUNT_GUARANTEES_MAX];

/* Rises whenever what an account held becomes another's; never 0. */
extern u32 umacct_account_generation;

/*
 * Deeper cgroups count for their ancestor here: a branch is walked under the lock, and its
 * depth is the tenant's to choose.
 */
#define ACCOUNT_LEVEL_MAX	64

int umacct_account_init(void);
int umacct_account_make_root(void);
void umacct_account_exit(void);
struct account *umacct_account_find_locked(u64 id);
struct account *umacct_account_get(u64 id);
struct account *umacct_account_after_locked(u64 seq);
struct account *umacct_account_nearest_locked(struct cgroup *cgrp);
struct account *umacct_account_create(struct cgroup *cgrp);
struct account *umacct_account_open(u64 id);
void umacct_account_free(struct account *account);
void umacct_account_held_locked(const struct account *account, struct held *held);
void umacct_account_pass_on_local(struct account *account);
void umacct_account_inherit_locked(struct account *account);
void umacct_account_configure_locked(struct account *account,
				     const struct account_settings *settings);
void umacct_account_shorten_locked(struct account *account);

/*
 * The cgroup whose account counts what is taken in a cgroup of the v2 hierarchy: itself, or its
 * ancestor at the deepest level that has accounts.
 */
static inline struct cgroup *account_cgroup(struct cgroup *cgrp)
{
	if (unlikely(cgrp->level > ACCOUNT_LEVEL_MAX))
		cgrp = cgroup_ancestor(cgrp, ACCOUNT_LEVEL_MAX);
	return cgrp;
}

/*
 * Finds the account that an account's memory counts for: itself, or its nearest online ancestor.
 * For RCU readers, or under umacct_ledger_lock.
 */
static inline struct account *account_nearest_online(struct account *account)
{
	while (unlikely(!READ_ONCE(account->online)))
		account = READ_ONCE(account->parent);
	return account;
}

/*
 * Counts managed memory, or less than 0, that is held in a cgroup itself, which was online. It
 * comes to the nearest online ancestor of a cgroup that is removed meanwhile: either it is seen
 * here that the account is offline, or account_offline_locked() of removal.c finds it and passes it
 * on. For RCU readers.
 */
static inline void account_add_managed_local(struct account *account, s64 bytes)
{
	atomic64_add(bytes, &account->managed_local);
	/* Pairs with the barrier in account_offline_locked() of removal.c. */
	smp_mb__after_atomic();
	if (unlikely(!READ_ONCE(account->online)))
		umacct_account_pass_on_local(account);
}

/*
 * Bytes held in the whole subtree. Under umacct_ledger_lock, only managed memory comes and goes
 * meanwhile.
 */
static inline u64 account_usage(const struct account *account)
{
	return READ_ONCE(account->booked) + managed_bytes(&account->managed);
}

/* Takes another reference on an account. */
static inline void account_hold(struct account *account)
{
	atomic_inc(&account->refs);
}

/* Drops a reference; @account may be NULL. */
static inline void account_put(struct account *account)
{
	if (account && unlikely(atomic_dec_and_test(&account->refs)))
		umacct_account_free(account);
}

/*
 * Works out what follows from an account's ancestors, if any setting has changed since that was
 * done last. So a change of settings costs no walk over all accounts.
 */
static inline void account_update_locked(struct account *account)
{
	if (unlikely(account->settings_at != umacct_settings.state))
		umacct_account_inherit_locked(account);
}

/* --- events --------------------------------------------------------------- */

/* An event, as it is sent to listeners; @account is the task's, and referenced. */
struct event {
	enum umacct_event_type type;
	u64 seq;
	struct account *account;
	struct pending_event what;
};

/* The number of the newest event, and how many could not be delivered to all listeners. */
struct event_counts {
	u64 sent;
	u64 lost;
};

void umacct_event_init(int (*send)(const struct event *event));
void umacct_event_post_locked(enum umacct_event_type type, struct account *account,
			      struct account *limit_account, u64 size, u64 usage, u64 limit);
void umacct_event_flush(void);
void umacct_event_exit(void);

/* Both guarded by umacct_ledger_lock; the latter is how many accounts have pending events. */
extern struct event_counts umacct_event_counts;
extern u32 umacct_event_waiting;

void umacct_event_start_work(void);

/* Has noted events sent. Not under umacct_ledger_lock. */
static inline void event_kick(void)
{
	if (unlikely(READ_ONCE(umacct_event_waiting)))
		umacct_event_start_work();
}

/* --- removal -------------------------------------------------------------- */

struct work_struct;

int umacct_removal_init(void);
void umacct_removal_follow(struct work_struct *work);
void umacct_removal_exit(void);

#endif /* UMACCT_ACCOUNT_H */
