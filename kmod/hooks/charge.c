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
 *
 * The mask is not trusted to have been changed: the call that asks for it is marked when
 * it is. Pages of a call without the mark may hold what another tenant left there, or
 * are not charged; they go back to the driver, and the allocation is refused.
 *
 * The driver may hold locks, so nobody may sleep for being above memory.high. Near it
 * the allocation takes what is free and doesn't reclaim, or is refused: the kernel then
 * delays the task when it returns to user space.
 */
#include <linux/gfp.h>

#include "hooks/charge.h"
#include "hooks/possible.h"
#include "ledger/settings.h"
#include "ledger/work.h"
#include "memcg.h"

DECLARE_REDIRECT(unsigned int, compute_gfp_mask, (void *nv, void *at));
DECLARE_ORIGINAL(u32, free_pages, (void *nv, u32 count, u8 contiguous, u32 cache, void *priv));

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
	state = READ_ONCE(umacct_hook_gfp.state);
	if (unlikely(state != UMACCT_HOOK_ARMED)) {
		call_end(call);
		return state == UMACCT_HOOK_FAILED && !native ? CHARGE_REFUSED : CHARGE_OFF;
	}
	if (call->zero_pages)
		*zeroed = 0;
	return CHARGE_ON;
}

/**
 * umacct_charge_undo() - give pages back that must not be handed out
 * @nv: as nv_alloc_pages() was called with; likewise the next three
 * @count: pages
 * @contiguous: they are
 * @cache: how they are mapped
 * @priv: what it has allocated; cleared
 *
 * Context: process context, may sleep; the driver's locks are held.
 */
void umacct_charge_undo(void *nv, u32 count, u8 contiguous, u32 cache, void **priv)
{
	umacct_original_free_pages(nv, count, contiguous, cache, *priv);
	*priv = NULL;
	pr_warn_ratelimited("an allocation of %u pages was refused: the driver's mask was not changed for it\n",
			    count);
}

/* The driver's first allocation tells whether it charges by itself. */
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
	struct call *call;
	gfp_t gfp;

	probe_enter(&umacct_hook_gfp.probe);
	gfp = (__force gfp_t)umacct_original_compute_gfp_mask(nv, at);
	if (unlikely(!READ_ONCE(driver_profile(HOOK_NVIDIA)->mask_seen)))
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
	probe_leave(&umacct_hook_gfp.probe);
	return (__force unsigned int)gfp;
}

/* Until it is known whether the driver charges, and while it doesn't and somebody asks. */
static bool charge_wanted(void)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);

	if (!READ_ONCE(profile->mask_seen))
		return true;
	if (READ_ONCE(profile->native_charge))
		return profile->page_pools;
	return READ_ONCE(umacct_settings.charging) || READ_ONCE(umacct_settings.charge_default);
}

/* The mask comes first: who has got it relies on nothing while its pages are being found. */
static bool relies_on_hook(const struct call *call)
{
	return call->account_pages && !READ_ONCE(call->charged);
}

static void charge_quiesce(void)
{
	umacct_call_wait_for(relies_on_hook);
}

/**
 * umacct_charge_possible() - can charging be switched on?
 * @why: set to a sentence if not
 *
 * Context: under umacct_hook_lock().
 */
bool umacct_charge_possible(const char **why)
{
	if (!umacct_memcg_possible(why))
		return false;
	if (READ_ONCE(driver_profile(HOOK_NVIDIA)->native_charge)) {
		*why = "the driver charges its pages by itself";
		return false;
	}
	if (!umacct_hook_possible(&umacct_hook_gfp)) {
		*why = "this build of the driver has no nv_compute_gfp_mask to hook";
		return false;
	}
	return true;
}

/* A static function, of which there may be no copy to hook. */
struct hook umacct_hook_gfp = {
	.name = "charge",
	.wanted = charge_wanted,
	.quiesce = charge_quiesce,
	.calls = { {
		.symbol = "nvidia:nv_free_pages",
		.entry = &umacct_original_free_pages_entry,
	} },
	.probe = {
		.symbol = "nvidia:nv_compute_gfp_mask",
		REDIRECT_STATIC(compute_gfp_mask),
	},
};
