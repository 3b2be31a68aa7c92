/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_AVAILABLE_H
#define UMACCT_AVAILABLE_H

#include <linux/mm.h>
#include <linux/types.h>

void umacct_available_init(void);
u64 umacct_available_of(long pages);

/**
 * available_now() - how much memory the driver could have; see umacct_available_of()
 *
 * Context: may sleep.
 */
static inline u64 available_now(void)
{
	return umacct_available_of(si_mem_available());
}

#endif /* UMACCT_AVAILABLE_H */
