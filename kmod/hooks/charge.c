// SPDX-License-Identifier: GPL-2.0-only
/*
 * Native charging: the kernel's memory controller is made to see the driver's
 * pages, by __GFP_ACCOUNT in the mask that the driver computes for them.
 *
 * A driver that keeps freed pages in pools (590 and later) would hand a page
 * that is charged to one cgroup to another. It takes only allocations that must
 * be cleared from a pool, and returns only those to it. So it is told not to
 * clear, which keeps both ends of the page's life away from the pool, and the
 * page allocator clears instead.
 */
#include <linux/gfp.h>

#include "hooks/charge.h"
#include "ledger/settings.h"
#include "memcg.h"

/**
 * charge_begin() - have the pages of the coming allocation charged
 * @call: becomes the current task's call
 * @zeroed: the driver's argument; cleared where the page allocator is to do it
 *
 * Context: process context.
 * Return: true if charge_end() must follow.
 */
bool charge_begin(struct call *call, u8 *zeroed)
{
	if (hook_gfp.state != UMACCT_HOOK_ARMED || !memcg_charges_current())
		return false;
	*call = (struct call) {
		.account_pages = true,
		.zero_pages = *zeroed && driver_profile(HOOK_NVIDIA)->page_pools,
	};
	call_begin(call);
	if (call->zero_pages)
		*zeroed = 0;
	return true;
}

/**
 * charge_end() - the allocation is made, or not
 * @call: what charge_begin() said yes to
 *
 * Context: process context.
 * Return: true if its pages were charged.
 */
bool charge_end(struct call *call)
{
	call_end(call);
	return call->charged;
}

/* nv_compute_gfp_mask() returns. */
static void charge_gfp(struct pt_regs *regs)
{
	struct call *call = call_current();
	gfp_t gfp = (__force gfp_t)regs_return_value(regs);

	if (!call || !call->account_pages)
		return;
	gfp |= __GFP_ACCOUNT;
	if (call->zero_pages)
		gfp |= __GFP_ZERO;
	call->charged = true;
	regs_set_return_value(regs, (__force unsigned int)gfp);
}
NOKPROBE_SYMBOL(charge_gfp);

/* May any account ask for charging? */
static bool charge_wanted(void)
{
	return READ_ONCE(settings.charging) || READ_ONCE(settings.charge_default);
}

/**
 * charge_by_driver() - does the driver charge this task's pages by itself?
 *
 * Context: process context.
 */
bool charge_by_driver(void)
{
	return unlikely(driver_profile(HOOK_NVIDIA)->native_charge) && memcg_charges_current();
}

/**
 * charge_possible() - can charging be switched on?
 * @why: set to a sentence if not
 *
 * Context: may sleep.
 */
bool charge_possible(const char **why)
{
	if (!memcg_possible(why))
		return false;
	if (driver_profile(HOOK_NVIDIA)->native_charge) {
		*why = "the driver charges its pages by itself";
		return false;
	}
	if (hook_gfp.state == UMACCT_HOOK_FAILED || !hook_possible(&hook_gfp)) {
		*why = "this build of the driver has no nv_compute_gfp_mask to hook";
		return false;
	}
	return true;
}

struct hook hook_gfp = {
	.name = "charge",
	.wanted = charge_wanted,
	.probe = {
		.symbol = "nvidia:nv_compute_gfp_mask",
		.on_return = charge_gfp,
	},
};
