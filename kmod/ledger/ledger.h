/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: who holds how much of the memory that the driver took.
 *
 * Three kinds of objects, all guarded by one lock:
 *  - an account for each cgroup that ever held driver memory or has a limit,
 *    and for each of its ancestors;
 *  - a client for each process of an account;
 *  - a record for each live allocation, found by the driver's handle.
 *
 * The lock is a raw spinlock that is held for a walk up one branch of the
 * hierarchy, never across the driver's work, an allocation or a copy to user
 * space. The driver itself serialises allocations and frees on its API lock, so
 * it is not what callers wait for; in exchange a limit is exact, and every
 * account is seen in a consistent state.
 */
#ifndef UMACCT_LEDGER_H
#define UMACCT_LEDGER_H

#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <umacct.h>

struct cgroup;

/**
 * struct account - what the tasks of a cgroup hold
 * @id: the cgroup's
 * @parent: the account of the parent cgroup, NULL for the root's; referenced
 * @level: the cgroup's depth; the root's is 0
 * @path: the cgroup's path from the root of the hierarchy
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
	const char *path;
	struct cgroup *cgrp;
	struct hlist_node hash;
	struct list_head list;
};

/**
 * struct client - a process that allocated on an account
 * @pid: its thread group's; keeps the number from being used again
 * @account: referenced; may be dead, see account_heir()
 * @start_time: as field 22 of /proc/PID/stat, in nanoseconds
 * @refs: one for being listed, one from each record and call under way
 * @records: live allocations
 * @listed: on the ledger's list; a client that isn't is only waiting for @refs
 * @seq: order of creation
 * @refused_tid: thread whose allocation was refused last
 * @refused_pages: how many pages it asked for
 * @refused_page_size: in pages of this size; with less it is the same refusal
 *
 * A process that is moved to another cgroup is another client from then on.
 */
struct client {
	struct pid *pid;
	struct account *account;
	u64 usage;
	u64 peak;
	u64 charged;
	u64 managed;
	u64 allocs;
	u64 frees;
	u64 start_time;
	u64 seq;
	u32 refs;
	u32 records;
	bool listed;
	pid_t refused_tid;
	u32 refused_pages;
	u64 refused_page_size;
	char comm[TASK_COMM_LEN];
	struct hlist_node hash;
	struct list_head list;
};

enum record_kind {
	RECORD_SYSTEM,		/* nv_alloc_pages() for a client */
	RECORD_DRIVER,		/* nv_alloc_pages() for the driver itself */
	RECORD_MANAGED,		/* nvidia-uvm's, charged by the driver */
};

/**
 * struct record - one live allocation
 * @key: the driver's handle
 * @bytes: what left the free list
 * @client: who made it; NULL for the driver itself and where no process did
 * @account: whom it counts for; NULL for the driver itself
 * @kind: what it is
 * @charged: the kernel's memory controller sees it
 *
 * Holds a reference on @client, or on @account where there is no client.
 */
struct record {
	struct hlist_node hash;
	unsigned long key;
	u64 bytes;
	struct client *client;
	struct account *account;
	enum record_kind kind;
	bool charged;
};

/**
 * struct ledger - the totals and the lists
 * @accounts: all that are not dead, parents before children
 * @clients: in order of creation
 * @generation: changes whenever an account or a client comes or goes
 * @decides: some allocation may be refused or charged: accounts have to be found
 *	before the driver is asked
 * @hard_limits: accounts that have a hard limit
 * @charging: accounts that say that they are charged
 * @throttles: accounts that have a throttle
 * @views: accounts that ask for a view
 * @spares: records that are not in use
 * @reserve: bytes of MemAvailable that allocations must leave
 * @pending: bytes that the driver is allocating just now, where @reserve matters
 */
struct ledger {
	raw_spinlock_t lock;
	struct account *root;
	struct list_head accounts;
	struct list_head clients;
	u32 nr_accounts;
	u32 nr_clients;
	u32 nr_records;
	u32 generation;
	u64 next_seq;
	u64 driver_usage;
	u64 driver_peak;
	u64 untracked;
	u64 untracked_count;
	u64 stale_count;
	bool decides;
	u32 hard_limits;
	u32 charging;
	u32 throttles;
	u32 views;
	struct hlist_head spares;
	u32 nr_spares;
	u64 reserve;
	u64 reserve_count;
	u64 pending;
	bool charge_default;
};

extern struct ledger ledger;

/**
 * struct garbage - what lost its last reference under the lock
 * @accounts: to be freed
 * @clients: to be freed
 *
 * Nothing is freed while the lock is held.
 */
struct garbage {
	struct list_head accounts;
	struct list_head clients;
};

#define DEFINE_GARBAGE(name)	struct garbage name = {				\
	.accounts = LIST_HEAD_INIT(name.accounts),			\
	.clients = LIST_HEAD_INIT(name.clients),			\
}

/**
 * struct allocation - an allocation between ledger_begin() and ledger_end()
 * @bytes: what will leave the free list
 * @pages: how many the driver was asked for
 * @page_size: in blocks of this size, in bytes
 * @kind: what it is
 *
 * The caller fills in the above; ledger_begin() the rest.
 *
 * @account: whom it will count for; NULL for the driver's own
 * @client: who makes it; NULL for the driver's own
 * @reserved: @bytes count as reserved in the account's branch
 * @pending: @bytes count in the ledger's pending
 * @charge: the account asks the kernel to charge
 */
struct allocation {
	u64 bytes;
	u64 page_size;
	u32 pages;
	enum record_kind kind;

	struct account *account;
	struct client *client;
	bool reserved;
	bool pending;
	bool charge;
};

/* account.c */
int account_init(void);
void account_exit(void);
struct account *account_find_locked(u64 id);
struct account *account_create(struct cgroup *cgrp);
struct account *account_open(u64 id);
struct account *account_heir(struct account *account);
void account_put_locked(struct account *account, struct garbage *garbage);
void account_put(struct account *account);
void account_inherit_locked(void);
void account_refresh(void);

/* client.c */
struct client *client_find_locked(const struct pid *pid, u64 account_id);
struct client *client_alloc(void);
void client_add_locked(struct client *fresh, struct account *account);
void client_discard_locked(struct client *fresh, struct account *account,
			   struct garbage *garbage);
void client_put_locked(struct client *client, struct garbage *garbage);
void client_unlist_locked(struct client *client, struct garbage *garbage);
bool client_exited(const struct client *client);
void client_reap(void);
void client_exit(void);

/* ledger.c */
int ledger_init(void);
void ledger_exit(void);
bool ledger_begin(struct allocation *alloc);
void ledger_end(struct allocation *alloc, bool success, unsigned long key, bool charged);
u64 ledger_free(unsigned long key);
u64 ledger_drop(bool managed);
void ledger_refresh(void);
void garbage_free(struct garbage *garbage);

#endif /* UMACCT_LEDGER_H */
