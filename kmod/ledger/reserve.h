/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_RESERVE_H
#define UMACCT_RESERVE_H

#include <linux/types.h>

struct account;

/**
 * struct reserve_room - what an allocation may take without falling short of the reserve
 * @must_leave: something must be left
 * @reserve: for the machine's reserve
 * @leave: for all; worked out by umacct_reserve_take()
 * @available: see available_now(); of a moment ago
 * @in_lists: free pages in the processors' lists, which @available has not got; 0 unless what
 *	is available is what guarantees keep
 * @settled: how much had been pending and no longer was, before that moment
 * @outdated: set by umacct_reserve_take() if it refuses because of what settled since: a
 *	newer look at the memory may allow it
 * @last: nobody looks again; the refusal counts
 */
struct reserve_room {
	bool must_leave;
	u64 reserve;
	u64 leave;
	u64 available;
	u64 in_lists;
	u64 settled;
	bool outdated;
	bool last;
};

struct reserve_room umacct_reserve_room(void);
u64 umacct_reserve_kept_from(const struct account *account);
bool umacct_reserve_take(struct account *account, u64 bytes, struct reserve_room *room);
void umacct_reserve_settle(u64 bytes);

#endif /* UMACCT_RESERVE_H */
