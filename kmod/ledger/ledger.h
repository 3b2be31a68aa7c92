/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: who holds how much of the memory that the driver took.
 *
 * Three kinds of objects, all guarded by one lock:
 *  - an account for each cgroup that ever held driver memory or has a limit,
 *    and for each of its ancestors;
 *  - a client for each process of an account;
 *  - a record for each live allocation, found by the driver's handle.
 */
#ifndef UMACCT_LEDGER_H
#define UMACCT_LEDGER_H

#include <linux/list.h>
#include <linux/types.h>

#include "ledger/allocation.h"
#include "ledger/lock.h"

/**
 * struct ledger - the totals and the lists
 * @accounts: all that are not dead, parents before children
 * @clients: in order of creation
 * @generation: changes whenever an account or a client comes or goes
 * @spares: records that are not in use
 * @pending: bytes that the driver is allocating just now, where there is a reserve
 */
struct ledger {
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
	struct hlist_head spares;
	u32 nr_spares;
	u64 reserve_count;
	u64 pending;
};

extern struct ledger ledger;

int ledger_init(void);
void ledger_exit(void);
bool ledger_begin(struct allocation *alloc);
void ledger_end(struct allocation *alloc, bool success, unsigned long key, bool charged);
u64 ledger_free(unsigned long key);
u64 ledger_drop(bool managed);
void ledger_refresh(void);

#endif /* UMACCT_LEDGER_H */
