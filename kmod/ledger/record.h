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

/* Guarded by umacct_ledger_lock. */
extern struct record_totals umacct_record_totals;
extern u32 umacct_record_spares;

int umacct_record_init(void);
void umacct_record_exit(void);
void umacct_record_fill_spares(void);
void umacct_record_trim_spares(void);
bool umacct_record_set_aside_locked(struct allocation *alloc);
void umacct_record_give_back_locked(struct allocation *alloc);
void umacct_record_end(struct allocation *alloc, bool success, unsigned long key, bool charged);
u64 umacct_record_erase(unsigned long key);
struct record *umacct_record_take_locked(unsigned long key);
void umacct_record_put_back_locked(struct record *record);
u64 umacct_record_settle_locked(struct record *record);
u64 umacct_record_drop(bool uvm);

/**
 * record_refill() - have some spare records
 *
 * Context: may sleep; umacct_ledger_lock not held.
 */
static inline void record_refill(void)
{
	if (unlikely(READ_ONCE(umacct_record_spares) < RECORD_SPARES_LOW))
		umacct_record_fill_spares();
}

/**
 * record_trim() - have not too many spare records; each free calls it
 *
 * Context: any but an interrupt or NMI; umacct_ledger_lock not held.
 */
static inline void record_trim(void)
{
	if (unlikely(READ_ONCE(umacct_record_spares) > RECORD_SPARES_MAX))
		umacct_record_trim_spares();
}

#endif /* UMACCT_RECORD_H */
