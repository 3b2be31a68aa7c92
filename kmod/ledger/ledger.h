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
 * @metadata: part of @usage that the drivers keep beside the pages
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

int ledger_init(void);
void ledger_exit(void);
bool ledger_precheck(struct allocation *alloc);
void ledger_end(struct allocation *alloc, bool success, unsigned long key, bool charged);
u64 ledger_free(unsigned long key);
struct record *ledger_take(unsigned long key);
void ledger_put_back(struct record *record);
u64 ledger_settle(struct record *record);
u64 ledger_drop(bool uvm);
void ledger_refresh(void);
void ledger_read_totals(struct ledger_totals *totals);

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
	if (likely(!READ_ONCE(settings.precheck_enabled)) || alloc->kind == ALLOCATION_DRIVER)
		return true;
	return ledger_precheck(alloc);
}

#endif /* UMACCT_LEDGER_H */
