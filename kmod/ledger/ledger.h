/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: who holds how much of the memory that the driver took.
 *
 * Four kinds of objects, of which the first three are guarded by one lock:
 *  - an account for each cgroup that ever held driver memory or has a limit,
 *    and for each of its ancestors;
 *  - a client for each process of an account;
 *  - a record for each live allocation, found by the driver's handle;
 *  - a record for each chunk of managed memory, likewise; see chunk.h.
 *
 * This is what hooks and readers call.
 */
#ifndef UMACCT_LEDGER_H
#define UMACCT_LEDGER_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/types.h>

#include "ledger/allocation.h"
#include "ledger/event.h"
#include "ledger/record.h"
#include "ledger/settings.h"

/**
 * struct ledger_totals - the ledger's sums, all of one moment
 * @usage: bytes held for all accounts
 * @charged: part of @usage that the kernel's memory controller sees
 * @managed: part of @usage that is managed memory
 * @metadata: part of @usage that is the drivers' own metadata
 * @records: see struct record_totals
 * @settings: see struct settings
 * @events: see struct event_counts
 * @reserve_count: allocations refused for the reserve
 * @unattributed_count: allocations refused because memory ran out to find out whose
 *	they were
 * @accounts: how many there are
 * @clients: how many there are
 */
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
void umacct_ledger_refuse_impossible(struct allocation *alloc);
void umacct_ledger_tell_failure(u64 account_id, u64 bytes, u64 available);
void umacct_ledger_count_wait(u64 account_id, u64 ns);
struct record *umacct_ledger_take(unsigned long key);
void umacct_ledger_put_back(struct record *record);
u64 umacct_ledger_settle(struct record *record);
u64 umacct_ledger_drop(bool uvm);
void umacct_ledger_refresh(void);
void umacct_ledger_read_totals(struct ledger_totals *totals);

/**
 * ledger_begin() - the driver is about to be asked for memory
 * @alloc: what the caller fills in, the rest zero
 *
 * If this says yes, ledger_end() must follow, whatever the driver answers.
 *
 * Context: process context, may sleep; the driver's locks are held.
 * Return: false if a limit forbids it.
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

/**
 * ledger_free() - the driver has given memory back
 * @key: its handle, which nobody else has got yet; one that was never recorded is ignored
 *
 * Context: any but an interrupt or NMI.
 * Return: the bytes of the pages that were given back, 0 if the handle is not known.
 */
static inline u64 ledger_free(unsigned long key)
{
	u64 bytes = umacct_record_erase(key);

	event_kick();
	return bytes;
}

#endif /* UMACCT_LEDGER_H */
