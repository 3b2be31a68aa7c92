/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ACCOUNT_H
#define UMACCT_ACCOUNT_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include <umacct.h>

struct cgroup;

/**
 * struct account - what the tasks of a cgroup hold
 * @id: the cgroup's
 * @parent: the account of the parent cgroup, NULL for the root's; referenced
 * @level: the cgroup's depth; the root's is 0
 * @cgrp: the cgroup, not referenced; NULL from its removal on
 * @seq: order of creation; a parent's is smaller than its children's
 * @refs: one for being listed, one from each child, client, record, unsent
 *	event and call under way
 * @dead: the cgroup was removed; see account_heir()
 * @own: bytes held by tasks of this cgroup, and of removed ones below it
 * @usage: bytes held in the whole subtree
 * @reserved: bytes of the subtree that the driver is allocating just now
 * @own_managed: as @own, of managed memory
 * @effective: the lowest hard limit from here up to the root
 * @effective_id: the account that sets it
 * @charge: as it was set
 * @charge_effective: what follows from it and from the ancestors
 * @over_soft: @usage is above @soft, and an event has said so
 * @view: see UMACCT_A_ACCOUNT_VIEW
 * @path: the cgroup's path from the root of the hierarchy
 *
 * The other members are the UMACCT_A_ACCOUNT_* attributes of the same name.
 */
struct account {
	u64 id;
	struct account *parent;
	u64 usage;
	u64 reserved;
	u64 peak;
	u64 soft;
	u64 hard;
	bool dead;
	bool over_soft;
	bool view;
	bool charge_effective;
	u64 effective;
	u64 own;
	u64 charged;
	u64 managed;
	u64 own_managed;
	u64 allocs;
	u64 frees;
	u64 failures;
	u64 refusals;
	u64 soft_count;
	u64 hard_count;
	u64 reserve_count;
	u64 throttle_ns;
	u64 throttled_ns;
	u64 effective_id;
	enum umacct_charge_mode charge;
	u32 level;
	u32 clients;
	u32 refs;
	u64 seq;
	struct cgroup *cgrp;
	struct hlist_node hash;
	struct list_head list;
	struct rcu_head rcu;
	char path[];
};

int account_init(void);
void account_exit(void);
struct account *account_find_locked(u64 id);
struct account *account_create(struct cgroup *cgrp);
struct account *account_open(u64 id);
struct account *account_heir(struct account *account);
void account_put_locked(struct account *account);
void account_put(struct account *account);
void account_inherit_locked(void);
void account_refresh(void);

#endif /* UMACCT_ACCOUNT_H */
