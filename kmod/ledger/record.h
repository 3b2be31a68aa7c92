/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_RECORD_H
#define UMACCT_RECORD_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "ledger/allocation.h"

/**
 * struct record_totals - what all records come to
 * @driver_usage: bytes that the driver holds for itself
 * @driver_peak: the most it ever did
 * @untracked: bytes ever allocated that could not be recorded
 * @untracked_count: allocations of that kind
 * @stale_count: records whose free was never seen, dropped
 * @nr: records
 */
struct record_totals {
	u64 driver_usage;
	u64 driver_peak;
	u64 untracked;
	u64 untracked_count;
	u64 stale_count;
	u32 nr;
};

/* How many spare records there are to be, and may be. */
#define RECORD_SPARES_LOW	16
#define RECORD_SPARES_HIGH	64
#define RECORD_SPARES_MAX	128

/* Guarded by ledger_lock. */
extern struct record_totals record_totals;
extern u32 record_spares;

int record_init(void);
void record_exit(void);
void record_fill_spares(void);
void record_trim_spares(void);
bool record_reserve_locked(struct allocation *alloc);
void record_unreserve_locked(struct allocation *alloc);
void record_insert_locked(struct allocation *alloc, unsigned long key, bool charged);
struct record *record_take_locked(unsigned long key);
void record_put_back_locked(struct record *record);
u64 record_settle_locked(struct record *record);
u64 record_erase_locked(unsigned long key);
u64 record_drop(bool uvm);

/**
 * record_refill() - have some spare records
 *
 * Context: may sleep; ledger_lock not held.
 */
static inline void record_refill(void)
{
	if (unlikely(READ_ONCE(record_spares) < RECORD_SPARES_LOW))
		record_fill_spares();
}

/**
 * record_trim() - have not too many spare records; whoever frees memory does
 *
 * Context: any but an interrupt or NMI; ledger_lock not held.
 */
static inline void record_trim(void)
{
	if (unlikely(READ_ONCE(record_spares) > RECORD_SPARES_MAX))
		record_trim_spares();
}

#endif /* UMACCT_RECORD_H */
