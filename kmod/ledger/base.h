/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared parts of the ledger: the lock, the queue of later work, counts that can't fall below zero,
 * hash tables, rows, held memory, and pending events.
 */
#ifndef UMACCT_BASE_H
#define UMACCT_BASE_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <umacct.h>

/* --- the lock ------------------------------------------------------------- */

/*
 * The ledger's lock. It guards every account, client and record, the lists and
 * hash tables that they are in, the queue of events and all totals.
 *
 * It is a raw spinlock that is held for a walk up one branch of the hierarchy,
 * never across the driver's work, an allocation or a copy to user space. In exchange a
 * limit is exact, and every account is seen in a consistent state.
 *
 * Managed memory is counted without it, by atomic additions: see chunk.c. Accounts and clients
 * are found there by RCU, so their hash lists are changed for RCU readers.
 *
 * Interrupts are off meanwhile: the kernel reports a removed cgroup under a lock that it
 * takes within css_set_lock while those events are traced, and css_set_lock is also taken
 * in softirqs.
 *
 * Functions whose name ends in _locked are called with it held, others without.
 */

extern raw_spinlock_t umacct_ledger_lock;

/*
 * How memory for what the ledger keeps is taken, before the lock is: where there is none, no process
 * is killed for it, as none is for the driver's own pages.
 */
#define GFP_LEDGER	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* --- later work ----------------------------------------------------------- */

/* Queue of the ledger's and the hooks' deferred work: no other work delays it. */
extern struct workqueue_struct *umacct_ledger_work;

/* --- counts --------------------------------------------------------------- */

/*
 * Takes something off a count of what is there. Below zero it would read as nearly
 * everything: a mistake of ours must not lock a tenant out for ever.
 */
#define count_sub(count, by) do {					\
	typeof(count) __count = (count);				\
	typeof(*__count) __by = (by);					\
									\
	if (WARN_ONCE(*__count < __by, "umacct: %s is below zero\n", #count)) \
		__by = *__count;					\
	WRITE_ONCE(*__count, *__count - __by);				\
} while (0)

/* --- hash tables ---------------------------------------------------------- */

/*
 * Hash tables of tenants' objects: sized at load for the most objects that fit into the machine's
 * memory, so that the time of a lookup does not depend on other tenants. The kernel's rhashtable
 * grows instead, and allocates when a record is inserted, under a lock that does not allow it.
 */

struct hash_table {
	struct hlist_head *heads;
	unsigned int shift;	/* bits of a hash that are no bucket's number */
};

int umacct_hash_table_init(struct hash_table *table, u64 bytes_per_bucket);
void umacct_hash_table_exit(struct hash_table *table);

static inline struct hlist_head *hash_table_bucket(const struct hash_table *table,
						   unsigned long key)
{
	return &table->heads[key * GOLDEN_RATIO_64 >> table->shift];
}

static inline unsigned int hash_table_buckets(const struct hash_table *table)
{
	return 1U << (BITS_PER_LONG - table->shift);
}

/* --- rows ----------------------------------------------------------------- */

/*
 * Rows: objects that are listed in the order of their creation, for readers that
 * go through them piece by piece. A reader remembers the number of the last row it
 * saw and asks for the next, so that it holds the lock for one row at a time and
 * goes on where it was whatever came or went meanwhile.
 */

/* A row's part of an object. @node is empty while it isn't listed; @seq rises over all kinds of rows. */
struct row {
	struct rb_node node;
	u64 seq;
};

/* The list, by number, and how many there are. */
struct rows {
	struct rb_root root;
	u32 nr;
};

void umacct_row_add_locked(struct rows *rows, struct row *row);
void umacct_row_remove_locked(struct rows *rows, struct row *row);
struct row *umacct_row_after_locked(const struct rows *rows, u64 seq);

/* --- what is held --------------------------------------------------------- */

/*
 * Held memory. Most of it is booked under the ledger's lock. Managed memory is counted without it:
 * a program touches it page by page, on all processors at once.
 */

/**
 * struct managed - managed memory that an account or a client holds
 * @bytes: all of it
 * @uncharged: the part that the kernel's memory controller does not see: usually nothing
 */
struct managed {
	atomic64_t bytes;
	atomic64_t uncharged;
};

/**
 * struct held - what an account or a client holds, as one reader sees it
 * @usage: all of it
 * @local: of an account: the part that is not a child's
 * @charged: the part of @usage that the kernel's memory controller sees
 * @managed: the part of @usage that is managed memory
 */
struct held {
	u64 usage;
	u64 local;
	u64 charged;
	u64 managed;
};

/* A count may be negative for a moment, while memory moves from one account to another. */
static inline u64 held_count(const atomic64_t *count)
{
	return max_t(s64, atomic64_read(count), 0);
}

static inline u64 managed_bytes(const struct managed *managed)
{
	return atomic64_read(&managed->bytes);
}

/*
 * Reads the parts of what is held that fit together, but for @local, from what is held beside
 * managed memory, and the part of that which the memory controller sees. Under umacct_ledger_lock.
 */
static inline void held_read(struct held *held, u64 booked, u64 booked_charged,
			     const struct managed *managed)
{
	u64 uncharged = held_count(&managed->uncharged);

	held->managed = managed_bytes(managed);
	held->usage = booked + held->managed;
	held->charged = booked_charged + held->managed - min(held->managed, uncharged);
}

/* Raises the most that was ever held. */
static inline void peak_raise(u64 *peak, u64 usage)
{
	u64 before = READ_ONCE(*peak), found;

	while (unlikely(usage > before)) {
		found = cmpxchg64(peak, before, usage);
		if (found == before)
			break;
		before = found;
	}
}

/* --- pending events ------------------------------------------------------- */

#define EVENT_TYPES	UMACCT_EVENT_FAILED

/**
 * struct pending_event - events of one type on an account that have not been sent
 * @count: how many; the rest is of the newest
 * @time: ns since the epoch
 * @size: bytes that were asked for or freed
 * @usage: bytes held by @limit_account, or what is available
 * @limit: bytes; 0 where no limit was in the way
 * @limit_account: whose limit it was, NULL for the machine's reserve and where there was none;
 *	referenced
 * @pid: of the task's thread group, in the initial pid namespace
 * @comm: of the task
 */
struct pending_event {
	u64 count;
	u64 time;
	u64 size;
	u64 usage;
	u64 limit;
	struct account *limit_account;
	pid_t pid;
	char comm[TASK_COMM_LEN];
};

/* Events of an account that have not been sent, by type; see event.c. */
struct pending {
	struct list_head list;
	struct pending_event events[EVENT_TYPES];
};

#endif /* UMACCT_BASE_H */
