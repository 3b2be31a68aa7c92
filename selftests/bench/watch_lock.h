/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before every file of the module that bench builds to see how long the
 * ledger's lock is held. No interrupt comes meanwhile, so that what it takes isn't
 * counted.
 */
#ifndef UMACCT_WATCH_LOCK_H
#define UMACCT_WATCH_LOCK_H

#include <linux/spinlock.h>

extern raw_spinlock_t umacct_ledger_lock;

void watch_lock(const char *where);
void watch_unlock(void);

/* watch_lock() keeps the flags that watch_unlock() restores. */
#define watched(lock, yes, no)	((lock) == &umacct_ledger_lock ? (void)(yes) : (void)(no))

#undef raw_spin_lock
#undef raw_spin_unlock
#undef raw_spin_lock_irq
#undef raw_spin_unlock_irq
#undef raw_spin_lock_irqsave
#undef raw_spin_unlock_irqrestore
#define raw_spin_lock(lock) \
	watched(lock, watch_lock(__func__), _raw_spin_lock(lock))
#define raw_spin_unlock(lock) \
	watched(lock, watch_unlock(), _raw_spin_unlock(lock))
#define raw_spin_lock_irq(lock) \
	watched(lock, watch_lock(__func__), _raw_spin_lock_irq(lock))
#define raw_spin_unlock_irq(lock) \
	watched(lock, watch_unlock(), _raw_spin_unlock_irq(lock))
#define raw_spin_lock_irqsave(lock, flags) \
	watched(lock, (watch_lock(__func__), (flags) = 0), (flags) = _raw_spin_lock_irqsave(lock))
#define raw_spin_unlock_irqrestore(lock, flags) \
	watched(lock, watch_unlock(), _raw_spin_unlock_irqrestore(lock, flags))

#endif /* UMACCT_WATCH_LOCK_H */
