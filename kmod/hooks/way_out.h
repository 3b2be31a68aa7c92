/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_WAY_OUT_H
#define UMACCT_WAY_OUT_H

#include <linux/atomic.h>
#include <linux/limits.h>
#include <linux/types.h>

void umacct_way_out_throttled(u64 penalty_ns, u64 account_id);
void umacct_way_out_failed(u64 account_id, u64 bytes, u64 pages, u64 block);
void umacct_way_out_had_memory(u64 pages);
void umacct_way_out_init(void);
void umacct_way_out_exit(void);

/* Tasks that have a failure to report. */
extern atomic_t umacct_way_out_failures;

/**
 * way_out_succeeded() - the driver had memory for an allocation of the current task
 * @pages: how many
 *
 * Context: process context, may sleep.
 */
static __always_inline void way_out_succeeded(u64 pages)
{
	if (unlikely(atomic_read(&umacct_way_out_failures)))
		umacct_way_out_had_memory(pages);
}

/**
 * way_out_refused() - a limit forbids an allocation of the current task
 *
 * That has an event of its own. An earlier failure of the driver was of the same request, in
 * larger pages.
 *
 * Context: process context, may sleep.
 */
static __always_inline void way_out_refused(void)
{
	if (unlikely(atomic_read(&umacct_way_out_failures)))
		umacct_way_out_had_memory(S64_MAX);
}

#endif /* UMACCT_WAY_OUT_H */
