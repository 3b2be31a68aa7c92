/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: who holds how much of the memory that the driver took.
 *
 * Four kinds of objects, of which the first three are guarded by one lock:
 *  - an account for each cgroup that ever held driver memory or has a limit,
 *    and for each of its ancestors;
 *  - a client for each process of an account;
 *  - a record for each live allocation, found by the driver's handle;
 *  - a record for each chunk of managed memory, likewise; see chunk.c.
 *
 * This is what hooks and readers call.
 */
#ifndef UMACCT_LEDGER_H
#define UMACCT_LEDGER_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/types.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/record.h"
#include "ledger/settings.h"

/* The ledger's sums, all of one moment: the UMACCT_A_STATUS_* of the same names. */
struct ledger_totals {
	u64 usage;
	u64 charged;
	u64 managed;
	u64 metadata;
	struct record_totals records;
	struct settings settings;
	struct event_counts events;
	u64 reserve_count;
	u64 unattributed_count;
	u32 accounts;
	u32 clients;
};

int umacct_ledger_init(void);
void umacct_ledger_exit(void);
bool umacct_ledger_precheck(struct allocation *alloc);
bool umacct_ledger_begin_metadata(struct allocation *alloc);
void umacct_ledger_refuse_impossible(struct allocation *alloc);
void umacct_ledger_count_wait(u64 account_id, u64 ns);
u64 umacct_ledger_drop(bool uvm, bool gone);
void umacct_ledger_read_totals(struct ledger_totals *totals);

/*
 * The driver is about to be asked for memory: @alloc is what the caller fills in, the rest zero.
 * Returns false if a limit forbids it, and @alloc says which; otherwise ledger_end() must follow,
 * whatever the driver answers. May sleep; the driver's locks are held.
 */
static inline bool ledger_begin(struct allocation *alloc)
{
	alloc->began = jiffies;
	if (likely(!READ_ONCE(umacct_settings.precheck_enabled)) || alloc->kind == ALLOCATION_DRIVER)
		return true;
	return umacct_ledger_precheck(alloc);
}

/**
 * ledger_end() - the driver has answered
 * @alloc: what ledger_begin() said yes to
 * @success: it has allocated
 * @key: its handle, if so
 * @charged: the kernel's memory controller was charged
 *
 * Sets the penalty of @alloc. What can't be recorded for want of memory is counted
 * as untracked.
 *
 * Context: process context, may sleep; the driver's locks are held.
 */
static inline void ledger_end(struct allocation *alloc, bool success, unsigned long key,
			      bool charged)
{
	umacct_record_end(alloc, success, key, charged);
	event_kick();
}

/*
 * The driver has given memory back under a handle that no other record has yet; one that was never
 * recorded is ignored. Not in interrupts.
 */
static inline void ledger_free(unsigned long key)
{
	umacct_record_erase(key);
	event_kick();
}

/* --- reading -------------------------------------------------------------- */

/*
 * Reading the ledger: a reader takes no lock of it, but passes a function, which is called for each
 * row while the lock is held.
 */

/**
 * struct account_bounds - what a cgroup could still have
 * @view: it, or one above it, asks for a view
 * @charged: the kernel's memory controller is charged for it
 * @effective: the lowest hard limit that holds for it, in bytes, or UMACCT_UNLIMITED
 * @left: bytes until the first hard limit is reached, or UMACCT_UNLIMITED
 * @reserve: bytes that are left to the machine, and to guarantees that are not its own
 */
struct account_bounds {
	bool view;
	bool charged;
	u64 effective;
	u64 left;
	u64 reserve;
};

int umacct_read_account(u64 id, int (*show)(const struct account *account, void *arg), void *arg);
int umacct_read_next_account(u64 *cursor, unsigned int *generation,
			     int (*show)(const struct account *account, void *arg), void *arg);
int umacct_read_next_client(u64 *cursor,
			    int (*show)(const struct client *client,
					const struct account *account, void *arg), void *arg);
void umacct_read_bounds(struct cgroup *cgrp, struct account_bounds *bounds);

/* --- settings ------------------------------------------------------------- */

/* A change of an account: of the settings of which @mask has the bit of their enum setting_id. */
struct settings_change {
	unsigned int mask;
	struct account_settings to;
};

int umacct_settings_change(struct account *account, const struct settings_change *change,
			   enum setting_id *which, const char **why);
int umacct_settings_change_reserve(u64 bytes, const char **why);

#endif /* UMACCT_LEDGER_H */
