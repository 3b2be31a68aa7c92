/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_WAY_OUT_H
#define UMACCT_WAY_OUT_H

#include <linux/atomic.h>
#include <linux/types.h>

struct shortage;

void umacct_way_out_throttled(u64 penalty_ns, u64 account_id);
void umacct_way_out_short(const struct shortage *shortage);
void umacct_way_out_failed(u64 account_id, u64 bytes, u64 pages, u64 block);
void umacct_way_out_had_memory(u64 pages);
void umacct_way_out_init(void);
void umacct_way_out_exit(void);

/* Tasks that have a shortage to report. */
extern atomic_t umacct_way_out_shortages;

/* The driver had memory for @pages for the current task. May sleep. */
static __always_inline void way_out_succeeded(u64 pages)
{
	if (unlikely(atomic_read(&umacct_way_out_shortages)))
		umacct_way_out_had_memory(pages);
}

#endif /* UMACCT_WAY_OUT_H */
