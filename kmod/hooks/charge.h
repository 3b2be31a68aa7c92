/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CHARGE_H
#define UMACCT_CHARGE_H

#include <linux/types.h>

#include "hooks/call.h"
#include "hooks/hook.h"
#include "memcg.h"

/* Are the pages of an allocation to be charged? */
enum charge_answer {
	CHARGE_OFF,
	CHARGE_ON,
	CHARGE_REFUSED,
};

enum charge_answer umacct_charge_begin(struct call *call, u8 *zeroed);
void umacct_charge_init(void);
void umacct_charge_undo(void *nv, u32 count, u8 contiguous, u32 cache, void **priv);

/*
 * Ends what umacct_charge_begin() said CHARGE_ON to. Returns true if the pages were charged, and
 * cleared where the driver was told not to. Otherwise umacct_charge_undo() must follow if the
 * allocation was made.
 */
static inline bool charge_end(struct call *call)
{
	call_end(call);
	return call->charged;
}

/* Does the driver charge this task's pages by itself? */
static inline bool charge_by_driver(void)
{
	return unlikely(READ_ONCE(driver_profile(HOOK_NVIDIA)->native_charge)) &&
	       memcg_charges_current();
}

/* Does it, and has it no page pools, from which a page could carry another's charge? */
static inline bool charge_alone(void)
{
	return charge_by_driver() && !driver_profile(HOOK_NVIDIA)->page_pools;
}

/* Does it, but also has pools? A page from a pool stays charged to the cgroup that freed it. */
static inline bool charge_keeps_from_pools(void)
{
	return charge_by_driver() && driver_profile(HOOK_NVIDIA)->page_pools;
}

#endif /* UMACCT_CHARGE_H */
