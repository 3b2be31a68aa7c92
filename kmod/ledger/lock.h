/* SPDX-License-Identifier: GPL-2.0-only */
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
 * Interrupts are off meanwhile: the kernel tells of a removed cgroup under a lock that it
 * takes within css_set_lock while those events are traced, and css_set_lock is also taken
 * in softirqs.
 */
#ifndef UMACCT_LOCK_H
#define UMACCT_LOCK_H

#include <linux/lockdep.h>
#include <linux/spinlock.h>

extern raw_spinlock_t umacct_ledger_lock;

#endif /* UMACCT_LOCK_H */
