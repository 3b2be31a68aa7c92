/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is held. Most of it is booked under the ledger's lock. Managed memory is counted
 * without it: a program touches it page by page, on all processors at once.
 */
#ifndef UMACCT_HELD_H
#define UMACCT_HELD_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct managed - managed memory that an account or a client holds
 * @bytes: all of it
 * @uncharged: the part that the kernel's memory controller does not see: usually nothing
 */
struct managed {
	atomic64_t bytes;
	atomic64_t uncharged;
};

/**
 * struct held - what an account or a client holds, as one reader sees it
 * @usage: all of it
 * @local: of an account: the part that is not a child's
 * @charged: the part of @usage that the kernel's memory controller sees
 * @managed: the part of @usage that is managed memory
 */
struct held {
	u64 usage;
	u64 local;
	u64 charged;
	u64 managed;
};

/* For a moment there may be less than nothing, while it passes from one account to another. */
static inline u64 held_count(const atomic64_t *count)
{
	return max_t(s64, atomic64_read(count), 0);
}

static inline u64 managed_bytes(const struct managed *managed)
{
	return atomic64_read(&managed->bytes);
}

/**
 * held_read() - the parts of what is held that fit together
 * @held: filled in, but for @local
 * @booked: what is held beside managed memory
 * @booked_charged: the part of it that the memory controller sees
 * @managed: managed memory
 *
 * Context: umacct_ledger_lock held.
 */
static inline void held_read(struct held *held, u64 booked, u64 booked_charged,
			     const struct managed *managed)
{
	u64 uncharged = held_count(&managed->uncharged);

	held->managed = managed_bytes(managed);
	held->usage = booked + held->managed;
	held->charged = booked_charged + held->managed - min(held->managed, uncharged);
}

/**
 * peak_raise() - the most that was ever held
 * @peak: what it was
 * @usage: what is held now
 *
 * Context: any.
 */
static inline void peak_raise(u64 *peak, u64 usage)
{
	u64 before = READ_ONCE(*peak), found;

	while (unlikely(usage > before)) {
		found = cmpxchg64(peak, before, usage);
		if (found == before)
			break;
		before = found;
	}
}

#endif /* UMACCT_HELD_H */
