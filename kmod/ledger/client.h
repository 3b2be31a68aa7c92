/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CLIENT_H
#define UMACCT_CLIENT_H

#include <linux/atomic.h>
#include <linux/cgroup.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/pid.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include <umacct.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "memcg.h"

struct obj_cgroup;

/* Largest number of clients at a time. */
#define CLIENT_NUMBER_BITS	20
#define CLIENT_NUMBERS		BIT(CLIENT_NUMBER_BITS)

/**
 * struct heap - what the drivers' heaps hold for a client
 * @bytes: all of it, with what is being asked for
 * @room: how much of it is part of the client's and its accounts' usage: in lots, and with that a
 *	reference on the client, unless it is 0
 * @charged: the part of @room that the kernel's memory controller sees; in no figure of what is charged
 * @objcg: the objcg that is charged for it; referenced
 *
 * @room is never less than what is held. It is changed, as are the next two, under
 * umacct_ledger_lock, and read without.
 */
struct heap {
	atomic64_t bytes;
	s64 room;
	u64 charged;
	struct obj_cgroup *objcg;
};

/**
 * struct client - a process that allocated on an account
 * @pid: its thread group's; found by its address, for its number may be used again
 * @account: referenced; may be offline, see account_nearest_online()
 * @start_time: as field 22 of /proc/PID/stat, in nanoseconds
 * @booked: bytes held, without managed memory
 * @booked_charged: the part of @booked that the kernel's memory controller sees
 * @managed: managed memory that is held
 * @heap: what the drivers' heaps hold; its room is a part of @booked
 * @number: by which umacct_clients has it
 * @refs: one for being listed, one from each record and call under way. It drops
 *	from 1 to 0 only under umacct_ledger_lock, when the client is taken off the list. A
 *	lookup without the lock gets a reference, or sees that the client is over
 * @member: of its account's clients, while it is listed
 * @row: in umacct_client_rows; empty while the client only waits for @refs to drop
 *
 * One takes at most 256 bytes, which is a block of the kernel's.
 *
 * A process that moves to another cgroup becomes another client. umacct_ledger_lock guards all
 * members except @managed, @heap, @peak, @refs and @comm.
 */
struct client {
	struct pid *pid;
	struct account *account;
	u64 booked;
	u64 booked_charged;
	struct managed managed;
	struct heap heap;
	u64 peak;
	u64 metadata;
	u64 pinned;
	u64 allocs;
	u64 frees;
	u64 start_time;
	u32 number;
	atomic_t refs;
	char comm[TASK_COMM_LEN];
	struct hlist_node hash;
	struct row row;
	union {
		struct list_head member;
		struct rcu_head rcu;
	};
};

/* Guarded by umacct_ledger_lock. */
extern struct rows umacct_client_rows;
extern struct hash_table umacct_client_table;
/* Clients by number. An array costs least: each free of a driver's heap looks one up. */
extern struct client __rcu **umacct_clients;

/* Random and odd; constant. */
extern unsigned long umacct_client_hash_seed[2];

struct client *umacct_client_after_locked(u64 seq);
struct client *umacct_client_alloc(struct account *account);
void umacct_client_add_locked(struct client *client);
void umacct_client_free(struct client *client);
bool umacct_client_unlist_idle_locked(struct client *client);
void umacct_client_end(struct client *client);
bool umacct_client_is_over(const struct client *client);
bool umacct_client_is_exiting(const struct client *client);
void umacct_client_offline_locked(struct account *account);
int umacct_client_init(void);
void umacct_client_exit(void);

/*
 * Many processes have clients on one account, and one process on many accounts, and a tenant
 * chooses both. Multiplied by secret odd numbers, no two of them are more likely
 * to share a bucket than any others.
 */
static inline unsigned long client_hash_key(const struct pid *pid, u64 account_id)
{
	return (unsigned long)pid * umacct_client_hash_seed[0] +
	       account_id * umacct_client_hash_seed[1];
}

static inline struct hlist_head *client_bucket(const struct pid *pid, u64 account_id)
{
	return hash_table_bucket(&umacct_client_table, client_hash_key(pid, account_id));
}

/*
 * Finds a thread group's client on an account, without a reference, or NULL. Under umacct_ledger_lock,
 * or for RCU readers: then it may be over.
 */
static inline struct client *client_find(const struct pid *pid, u64 account_id)
{
	struct hlist_node *node;
	struct client *client;

	node = rcu_dereference_raw(hlist_first_rcu(client_bucket(pid, account_id)));
	for (; node; node = rcu_dereference_raw(hlist_next_rcu(node))) {
		client = hlist_entry(node, struct client, hash);
		if (client->pid == pid && client->account->id == account_id &&
		    READ_ONCE(client->account->online))
			return client;
	}
	return NULL;
}

/*
 * Finds a thread group's client on an account that goes on, with a reference, or NULL. For RCU
 * readers.
 */
static inline struct client *client_get(const struct pid *pid, u64 account_id)
{
	struct client *client = client_find(pid, account_id);

	return likely(client && atomic_inc_not_zero(&client->refs)) ? client : NULL;
}

/* Drops a reference. A client that was never listed is freed with the last one. */
static inline void client_put(struct client *client)
{
	if (unlikely(atomic_dec_and_test(&client->refs)))
		umacct_client_free(client);
}

/* Takes the name of the thread that allocates now, which is the newest. */
static inline void client_name(struct client *client)
{
	/* Another thread may be changing it: some of both names then, and an end. */
	data_race(memcpy(client->comm, current->comm, TASK_COMM_LEN));
}

/*
 * How many live allocations a listed client has, with those that are being made. Under
 * umacct_ledger_lock.
 */
static inline u32 client_records(const struct client *client)
{
	return atomic_read(&client->refs) - 1;
}

/* Is the process gone, and reaped? */
static inline bool client_exited(const struct client *client)
{
	return !pid_has_task(client->pid, PIDTYPE_TGID);
}

/*
 * Will a client that holds nothing, and can't be freed meanwhile, hold nothing again? The usual end
 * of a client is that its process exits, and closes the driver.
 */
static inline bool client_is_ending(const struct client *client)
{
	return client_exited(client) || !READ_ONCE(client->account->online) ||
	       ((current->flags & PF_EXITING) && client->pid == task_tgid(current));
}

/* --- allocations ---------------------------------------------------------- */

/**
 * struct shortage - why a request got no memory
 * @type: refused by a hard limit, for the reserve, or failed by the driver; 0: it is not known whose
 *	it was, or there is no such request
 * @account_id: whose it was
 * @limit_id: the account whose limit it was; 0 if there was none
 * @bytes: what it would have taken
 * @usage: what that account held, or what was available
 * @limit: the limit, or what has to be left
 * @pages: pages asked for, rounded up to whole blocks
 * @block: pages in a block
 */
struct shortage {
	enum umacct_event_type type;
	u64 account_id;
	u64 limit_id;
	u64 bytes;
	u64 usage;
	u64 limit;
	u64 pages;
	u64 block;
};

enum allocation_kind {
	ALLOCATION_SYSTEM,		/* nv_alloc_pages() for a client */
	ALLOCATION_METADATA,		/* driver metadata about the owner's memory */
	ALLOCATION_HEAP,		/* the same for a client: counted with its heap */
	ALLOCATION_DRIVER,		/* any of these for the driver itself */
};

/**
 * struct allocation - an allocation between ledger_begin() and ledger_end()
 * @bytes: what will leave the free list, and @metadata
 * @metadata: what the driver keeps because of it, by a constant of its series; all of
 *	@bytes where it is ALLOCATION_METADATA
 * @pinned: memory of its own that a program registers; read for ALLOCATION_HEAP alone
 * @page_size: in blocks of this size, in bytes
 * @pages: how many the driver was asked for
 * @kind: what it is
 * @uvm: nvidia-uvm makes it, and its record goes with that driver
 *
 * The caller fills in the above and clears the rest, which is the ledger's:
 *
 * @began: when the driver was asked, in ticks
 * @counted: it is part of the branch's usage already
 * @pending_reserve: @bytes count as pending for the reserve
 * @charge: the account asks the kernel to charge
 * @account: the account that it will count for; NULL for the driver's own
 * @client: who makes it; NULL for the driver's own
 * @record: put aside for it, where it must not go unrecorded
 * @shortage: after ledger_begin() said no: why
 * @penalty_ns: after ledger_end(): how long the task should be made to wait for
 *	being above a soft limit, once it holds no lock of the driver
 * @account_id: the account that the wait counts for, if there is a penalty; or, if the driver
 *	failed, the account of the allocation; 0 if it is not known
 */
struct allocation {
	u64 bytes;
	u64 metadata;
	u64 pinned;
	u64 page_size;
	u32 pages;
	enum allocation_kind kind;
	bool uvm;

	unsigned long began;
	bool counted;
	bool pending_reserve;
	bool charge;
	struct account *account;
	struct client *client;
	struct record *record;
	struct shortage shortage;
	u64 penalty_ns;
	u64 account_id;
};

/*
 * Sets each member up that is read before it is written, on its own: cheaper than clearing all of it,
 * which the kernel has the compiler do besides unless the variable is __uninitialized.
 */
static __always_inline void allocation_init(struct allocation *alloc, enum allocation_kind kind,
					    u64 bytes, u64 metadata)
{
	alloc->bytes = bytes;
	alloc->metadata = metadata;
	alloc->page_size = 0;
	alloc->pages = 0;
	alloc->kind = kind;
	alloc->uvm = false;
	alloc->counted = false;
	alloc->pending_reserve = false;
	alloc->charge = false;
	alloc->account = NULL;
	alloc->client = NULL;
	alloc->record = NULL;
	alloc->penalty_ns = 0;
}

/* --- attribution ---------------------------------------------------------- */

void umacct_attribution_make(struct allocation *alloc);

/* Does the current task work for a process? */
static inline bool works_for_a_process(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/*
 * The cgroup that an allocation counts for. nvidia-uvm works for another process at times, and
 * in threads of its own: it says for which by the active memcg. Where that is the task's own memcg,
 * the task's cgroup counts: a cgroup without the memory controller, or a threaded one, has no memcg
 * of its own, but an ancestor's. The root's is that of an address space without an owner: a
 * program that reads or writes another's can keep it from going.
 */
static inline struct cgroup *attribution_cgroup(bool uvm)
{
	if (uvm && unlikely(current->active_memcg) && cgroup_subsys_on_dfl(memory_cgrp_subsys) &&
	    &current->active_memcg->css != memcg_css_of_current() && !memcg_active_is_nobodys())
		return account_cgroup(current->active_memcg->css.cgroup);
	return account_cgroup(rcu_dereference_check(current->cgroups,
						    lockdep_is_held(&umacct_ledger_lock) ||
						    rcu_read_lock_any_held())->dfl_cgrp);
}

/*
 * The same in a thread of nvidia-uvm's that works for a process's VA space: the process's own cgroup
 * while that is what pays, otherwise what attribution_cgroup() says. An RCU reader.
 */
static inline struct cgroup *attribution_cgroup_of(struct pid *process)
{
	struct task_struct *task = pid_task(process, PIDTYPE_TGID);

	if (task && current->active_memcg && cgroup_subsys_on_dfl(memory_cgrp_subsys) &&
	    task_css_check(task, memory_cgrp_id, true) != &current->active_memcg->css)
		task = NULL;
	return task ? account_cgroup(task_dfl_cgroup(task)) : attribution_cgroup(true);
}

/*
 * Finds the account of an allocation, unless it is the driver's own: the allocation gets its
 * account and client, with a reference on the latter or, where there is none, on the former.
 * Without memory, the account stays unknown. May sleep, and give umacct_ledger_lock up meanwhile.
 */
static __always_inline void attribution_find_locked(struct allocation *alloc)
	__must_hold(&umacct_ledger_lock)
{
	struct client *client = NULL;

	/* Preemption is off, so the cgroup stays. */
	if (works_for_a_process())
		client = client_find(task_tgid(current),
				     cgroup_id(attribution_cgroup(alloc->uvm)));
	if (likely(client)) {
		atomic_inc(&client->refs);
		alloc->client = client;
		alloc->account = client->account;
		return;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	umacct_attribution_make(alloc);
	raw_spin_lock_irq(&umacct_ledger_lock);
}

/* Takes umacct_ledger_lock, and finds the account that an allocation counts for. May sleep. */
static __always_inline void attribution_lock(struct allocation *alloc)
	__acquires(&umacct_ledger_lock)
{
	raw_spin_lock_irq(&umacct_ledger_lock);
	if (!alloc->account && alloc->kind != ALLOCATION_DRIVER)
		attribution_find_locked(alloc);
}

/*
 * Drops the reference of an allocation or a record. For RCU readers, or under umacct_ledger_lock.
 */
static inline void attribution_put(struct account *account, struct client *client)
{
	if (likely(client))
		client_put(client);
	else
		account_put(account);
}

/* --- the drivers' heaps --------------------------------------------------- */

/*
 * Heap memory of the drivers for each client, whatever its purpose.
 *
 * Each allocation says whose it is: a mark, which the hooks put where the driver leaves room for it,
 * names the client. So it is taken off the right one, whoever frees it, in whatever context.
 *
 * Most of it is counted without the ledger's lock, in a number of the client's. What it comes to is
 * part of the usage of the client's accounts in lots, which limits, the reserve and the memory
 * controller see.
 */

/*
 * The size of a lot; and the upper bound of what a client's accounts count too much. The latter is
 * larger, so that a block that is taken and freed at a boundary, again and again, moves no lots.
 */
#define HEAP_LOT	SZ_32K
#define HEAP_SPARE	(HEAP_LOT + SZ_4K)

/*
 * A mark: above the size, which the allocator's hooks keep below it, the client's number, and above
 * that the bits that distinguish a mark from other contents.
 */
#define HEAP_MARK_SHIFT		18
#define HEAP_OWNER_BITS		CLIENT_NUMBER_BITS
#define HEAP_SEAL_SHIFT		(HEAP_MARK_SHIFT + HEAP_OWNER_BITS)

/* Changes when what is marked is forgotten. */
extern u64 umacct_heap_seal;

int umacct_heap_take(u64 bytes, bool uvm, bool may_sleep, struct shortage *why);
bool umacct_heap_take_for(struct client *client, u64 bytes, bool may_sleep, struct shortage *why,
			  u64 *pending);
void umacct_heap_trim(struct client *client);
void umacct_heap_drop(bool all);
void umacct_heap_init(void);

/* The word to put beside an allocation, for an owner from umacct_heap_take(). */
static inline u64 heap_mark(u32 owner)
{
	return READ_ONCE(umacct_heap_seal) << HEAP_SEAL_SHIFT | (u64)owner << HEAP_MARK_SHIFT;
}

/*
 * The owner of an allocation, or 0 if there is no mark where one would be. @word may have the size
 * below it.
 */
static inline u32 heap_owner(u64 word)
{
	if (word >> HEAP_SEAL_SHIFT != READ_ONCE(umacct_heap_seal))
		return 0;
	return (word >> HEAP_MARK_SHIFT) & (BIT(HEAP_OWNER_BITS) - 1);
}

/*
 * Takes memory of a client's heap, unless its lots have no room for it: see umacct_heap_take_for().
 * For RCU readers.
 */
static __always_inline bool heap_take_of(struct client *client, u64 bytes)
{
	/* Fully ordered; pairs with the barrier in trim_locked(). */
	if (likely(atomic64_add_return(bytes, &client->heap.bytes) <= READ_ONCE(client->heap.room)))
		return true;
	atomic64_sub(bytes, &client->heap.bytes);
	return false;
}

/*
 * A driver's heap is about to be asked for memory, by the current task: what umacct_heap_take() does
 * at most times. Return: whose it is; 0 if it has to be asked.
 */
static __always_inline u32 heap_take_quickly(u64 bytes, bool uvm)
{
	struct client *client;
	u32 owner = 0;

	preempt_disable();
	client = client_find(task_tgid(current), cgroup_id(attribution_cgroup(uvm)));
	if (likely(client && heap_take_of(client, bytes)))
		owner = client->number;
	preempt_enable();
	return owner;
}

/*
 * Takes something off what a client's heap holds. Return: umacct_heap_trim() must follow, as nothing is
 * left of lots, or too much.
 */
static __always_inline bool heap_give_of(struct client *client, u64 bytes)
{
	const s64 left = atomic64_sub_return(bytes, &client->heap.bytes);

	return unlikely(left <= 0 || READ_ONCE(client->heap.room) - left > HEAP_SPARE);
}

/* Memory of a driver's heap, of an owner from heap_owner(), has been freed. Not in NMIs. */
static __always_inline void heap_give(u32 owner, u64 bytes)
{
	struct client *client;

	preempt_disable();
	client = rcu_dereference_check(umacct_clients[owner], rcu_read_lock_any_held());
	if (!WARN_ON_ONCE(!client) && heap_give_of(client, bytes)) {
		rcu_read_lock();
		preempt_enable();
		umacct_heap_trim(client);
		rcu_read_unlock();
		return;
	}
	preempt_enable();
}

#endif /* UMACCT_CLIENT_H */
