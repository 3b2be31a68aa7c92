/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before every file of the module that bench builds to see how long the
 * ledger's lock is held. No interrupt comes meanwhile, so that what it takes isn't
 * counted.
 */
#ifndef UMACCT_WATCH_LOCK_H
#define UMACCT_WATCH_LOCK_H

#include <linux/spinlock.h>

extern raw_spinlock_t ledger_lock;

void watch_lock(const char *where);
void watch_unlock(void);

static inline void watched_spin_lock(raw_spinlock_t *lock, const char *where)
	__acquires(lock)
{
	if (lock == &ledger_lock)
		watch_lock(where);
	else
		raw_spin_lock(lock);
}

static inline void watched_spin_unlock(raw_spinlock_t *lock)
	__releases(lock)
{
	if (lock == &ledger_lock)
		watch_unlock();
	else
		raw_spin_unlock(lock);
}

#undef raw_spin_lock
#undef raw_spin_unlock
#define raw_spin_lock(lock)	watched_spin_lock(lock, __func__)
#define raw_spin_unlock(lock)	watched_spin_unlock(lock)

#endif /* UMACCT_WATCH_LOCK_H */
