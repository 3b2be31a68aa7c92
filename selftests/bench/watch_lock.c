// SPDX-License-Identifier: GPL-2.0-only
/*
 * The longest that the ledger's lock was held, in the parameter watch_lock:
 * NANOSECONDS FUNCTION ALL_NANOSECONDS, the one that took it, and how long it was held in
 * all. Written to, it begins anew.
 */
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#include "watch_lock.h"

/* Guarded by umacct_ledger_lock. */
static unsigned long held_flags;
static u64 held_since;
static const char *held_by;
static u64 longest;
static const char *longest_by = "nobody";
static u64 in_all;

void watch_lock(const char *where)
{
	unsigned long flags;

	flags = _raw_spin_lock_irqsave(&umacct_ledger_lock);
	held_flags = flags;
	held_by = where;
	held_since = ktime_get_raw_fast_ns();
}

void watch_unlock(void)
{
	u64 held = ktime_get_raw_fast_ns() - held_since;
	unsigned long flags = held_flags;

	in_all += held;
	if (held > longest) {
		longest = held;
		longest_by = held_by;
	}
	_raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
}

static int get_longest(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%llu %s %llu\n", longest, longest_by, in_all);
}

static int set_longest(const char *value, const struct kernel_param *param)
{
	longest = 0;
	longest_by = "nobody";
	in_all = 0;
	return 0;
}

static const struct kernel_param_ops longest_ops = {
	.get = get_longest,
	.set = set_longest,
};

module_param_cb(watch_lock, &longest_ops, NULL, 0600);
