// SPDX-License-Identifier: GPL-2.0-only
/*
 * Native charging: the kernel's memory controller is made to see the driver's
 * pages, by __GFP_ACCOUNT in the mask that the driver computes for them.
 *
 * A driver that keeps freed pages in pools (590 and later) would hand a page
 * that is charged to one cgroup to another. It takes only allocations that must
 * be cleared from a pool, and returns only those to it. So it is made not to
 * clear, which keeps both ends of the page's life away from the pool, and the
 * page allocator clears instead.
 *
 * The mask is not trusted to have been changed: the call that asks for it is marked when
 * it is. Pages of a call without the mark may hold what another tenant left there, or
 * are not charged; they go back to the driver, and the allocation is refused.
 *
 * The driver may hold locks, so no task may sleep for being above memory.high. Near it
 * the allocation takes what is free and doesn't reclaim, or is refused: the kernel then
 * delays the task when it returns to user space.
 */
#include <linux/gfp.h>

#include "hooks/adapter.h"
#include "hooks/charge.h"
#include "ledger/base.h"
#include "ledger/settings.h"
#include "memcg.h"

/**
 * umacct_charge_begin() - have the pages of the coming allocation charged
 * @call: says what it takes; becomes the current task's call
 * @zeroed: the driver's argument; cleared where the page allocator is to do it
 *
 * Context: process context, may sleep.
 * Return: CHARGE_ON if charge_end() must follow, CHARGE_OFF if nothing is to be charged,
 *	CHARGE_REFUSED if the driver's mask can't be changed.
 */
enum charge_answer umacct_charge_begin(struct call *call, u8 *zeroed)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);
	const bool native = READ_ONCE(profile->native_charge);
	enum umacct_hook_state state;

	/* A driver that charges is kept from its pools alone: their pages are another's already. */
	if (!memcg_charges_current() || (native && !profile->page_pools))
		return CHARGE_OFF;
	call->zero_pages = *zeroed && profile->page_pools;
	call_begin(call);
	/* Disarming is announced first; calls that are known by then are waited for. */
	state = READ_ONCE(umacct_hook_compute_gfp_mask.state);
	if (unlikely(state != UMACCT_HOOK_ARMED)) {
		call_end(call);
		return state == UMACCT_HOOK_FAILED && !native ? CHARGE_REFUSED : CHARGE_OFF;
	}
	if (call->zero_pages)
		*zeroed = 0;
	return CHARGE_ON;
}

/*
 * Gives pages back that must not be handed out, of the arguments of nv_alloc_pages(). Clears
 * *@priv. The driver's locks are held.
 */
void umacct_charge_undo(void *nv, u32 count, u8 contiguous, u32 cache, void **priv)
{
	umacct_original_free_pages(nv, count, contiguous, cache, *priv);
	*priv = NULL;
	pr_warn_ratelimited("an allocation of %u pages was refused: the driver's mask was not changed for it\n",
			    count);
}

/* The driver's first allocation for a client shows whether it charges by itself. */
static noinline void see_mask(gfp_t gfp)
{
	struct driver_profile *profile = &umacct_driver_profiles[HOOK_NVIDIA];

	if (gfp & __GFP_ACCOUNT) {
		WRITE_ONCE(profile->native_charge, true);
		pr_info("the driver charges its pages by itself\n");
	}
	WRITE_ONCE(profile->mask_seen, true);
	queue_work(umacct_ledger_work, &umacct_hook_work);
}

/* nv_compute_gfp_mask() */
unsigned int umacct_replace_compute_gfp_mask(void *nv, void *at)
{
	INSIDE(compute_gfp_mask);
	struct call *call;
	gfp_t gfp;

	gfp = (__force gfp_t)umacct_original_compute_gfp_mask(nv, at);
	if (unlikely(!READ_ONCE(driver_profile(HOOK_NVIDIA)->mask_seen)) &&
	    kind_for_caller(HOOK_NVIDIA, ALLOCATION_SYSTEM) == ALLOCATION_SYSTEM)
		see_mask(gfp);
	call = call_current();
	if (call && call->account_pages) {
		gfp |= __GFP_ACCOUNT;
		if (call->zero_pages)
			gfp |= __GFP_ZERO;
		/* It is no reason to take what is kept for those that can't wait at all. */
		if (!umacct_memcg_may_block(call->bytes))
			gfp = (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NOMEMALLOC;
		WRITE_ONCE(call->charged, true);
	}
	return (__force unsigned int)gfp;
}

/* Armed while charging is wanted and the driver is not known to charge by itself. */
bool umacct_charge_wanted(void)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);

	if (!READ_ONCE(profile->mask_seen))
		return true;
	if (READ_ONCE(profile->native_charge))
		return profile->page_pools;
	return READ_ONCE(umacct_settings.charging) || READ_ONCE(umacct_settings.charge_default);
}

/* The mask comes first: its reader relies on nothing while its pages are being found. */
static bool relies_on_hook(const struct call *call)
{
	return call->account_pages && !READ_ONCE(call->charged);
}

void umacct_charge_quiesce(void)
{
	umacct_call_wait_for(relies_on_hook);
}

/* Can charging be switched on? Under umacct_hook_lock(). */
bool umacct_charge_possible(const char **why)
{
	if (!umacct_memcg_can_charge(why))
		return false;
	if (READ_ONCE(driver_profile(HOOK_NVIDIA)->native_charge)) {
		*why = "the driver charges its pages by itself";
		return false;
	}
	if (!umacct_hook_can_be_armed(&umacct_hook_compute_gfp_mask)) {
		*why = "this build of the driver has no nv_compute_gfp_mask to hook";
		return false;
	}
	return true;
}

/* Finds the kernel's functions that charge what others allocate, before any hook is armed. */
void umacct_charge_init(void)
{
	umacct_memcg_charges_bytes =
		!umacct_probe_resolve("obj_cgroup_charge",
				      &umacct_original_obj_cgroup_charge_entry) &&
		!umacct_probe_resolve("obj_cgroup_uncharge",
				      &umacct_original_obj_cgroup_uncharge_entry);
	if (!umacct_memcg_charges_bytes)
		pr_info("this kernel can't be made to charge the driver's metadata\n");
}
