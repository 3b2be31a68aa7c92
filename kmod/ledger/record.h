/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_RECORD_H
#define UMACCT_RECORD_H

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

/* Guarded by ledger_lock. */
extern struct record_totals record_totals;

int record_init(void);
void record_exit(void);
void record_refill(void);
bool record_reserve_locked(struct allocation *alloc);
void record_unreserve_locked(struct allocation *alloc);
void record_insert_locked(struct allocation *alloc, unsigned long key, bool charged);
u64 record_erase_locked(unsigned long key);
u64 record_drop(bool managed);

#endif /* UMACCT_RECORD_H */
