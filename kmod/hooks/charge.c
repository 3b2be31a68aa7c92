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
#include <linux/cgroup.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/page_counter.h>

#include "hooks/charge.h"
#include "compat.h"
#include "hooks/hooks.h"
#include "ledger/settings.h"

/* The root's pages are never charged. */
static bool task_is_charged(void)
{
	bool charged = false;
#ifdef CONFIG_MEMCG
	struct mem_cgroup *memcg;

	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	charged = memcg && memcg->css.parent;
	rcu_read_unlock();
#endif
	return charged;
}

/**
 * charge_read_figures() - what the memory controller says of a cgroup
 * @cgrp: a cgroup that can't go meanwhile
 * @figures: set if there is something
 *
 * Context: any; no lock is taken.
 * Return: false for the root, and where the controller is not enabled.
 */
bool charge_read_figures(const struct cgroup *cgrp, struct memory_figures *figures)
{
	bool known = false;
#ifdef CONFIG_MEMCG
	struct cgroup_subsys_state *css;
	unsigned long max;

	rcu_read_lock();
	css = mem_cgroup_disabled() ? NULL : rcu_dereference(cgrp->subsys[memory_cgrp_id]);
	known = css && css->parent;
	if (known) {
		struct mem_cgroup *memcg = mem_cgroup_from_css(css);

		max = READ_ONCE(memcg->memory.max);
		figures->current_bytes = (u64)page_counter_read(&memcg->memory) << PAGE_SHIFT;
		figures->max_bytes = max == PAGE_COUNTER_MAX ? UMACCT_UNLIMITED :
							       (u64)max << PAGE_SHIFT;
	}
	rcu_read_unlock();
#endif
	return known;
}

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
	if (hook_gfp.state != UMACCT_HOOK_ARMED || !task_is_charged())
		return false;
	*call = (struct call) {
		.account_pages = true,
		.zero_pages = *zeroed && driver_profile(HOOK_NVIDIA)->page_pools,
	};
	if (!call_begin(call))
		return false;
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

/**
 * charge_gfp() - nv_compute_gfp_mask() returns
 * @regs: its result
 *
 * Context: a kretprobe's handler.
 */
void charge_gfp(struct pt_regs *regs)
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

/**
 * charge_wanted() - may any account ask for charging?
 *
 * Context: any.
 */
bool charge_wanted(void)
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
	return unlikely(driver_profile(HOOK_NVIDIA)->native_charge) && task_is_charged();
}

/**
 * charge_possible() - can charging be switched on?
 * @why: set to a sentence if not
 *
 * Context: may sleep.
 */
bool charge_possible(const char **why)
{
	if (!IS_ENABLED(CONFIG_MEMCG)) {
		*why = "this kernel has no memory controller";
		return false;
	}
#ifdef CONFIG_MEMCG
	if (mem_cgroup_disabled()) {
		*why = "the memory controller is switched off: cgroup_disable=memory";
		return false;
	}
	if (!cgroup_subsys_on_dfl(memory_cgrp_subsys)) {
		*why = "the memory controller is not on cgroup v2";
		return false;
	}
#endif
	if (!umacct_kmem_online()) {
		*why = "the kernel accounts no kernel memory: cgroup.memory=nokmem, or no memory cgroup yet";
		return false;
	}
	if (driver_profile(HOOK_NVIDIA)->native_charge) {
		*why = "the driver charges its pages by itself";
		return false;
	}
	if (hook_gfp.state == UMACCT_HOOK_FAILED || !driver_hook_possible(&hook_gfp)) {
		*why = "this build of the driver has no nv_compute_gfp_mask to hook";
		return false;
	}
	return true;
}
