// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's memory controller: whether it can charge the driver's pages, and
 * what it says of a cgroup.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/page_counter.h>

#include <umacct.h>

#include "compat.h"
#include "memcg.h"

/**
 * umacct_memcg_read() - what the memory controller says of a cgroup
 * @cgrp: a cgroup that can't go meanwhile
 * @figures: set if there is something
 *
 * Context: any; no lock is taken.
 * Return: false for the root, and where the controller is not enabled.
 */
bool umacct_memcg_read(const struct cgroup *cgrp, struct memcg_figures *figures)
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
 * umacct_memcg_protected() - memory that cgroups use within their memory.min, which reclaim
 *	leaves alone
 *
 * No cgroup passes on more protection than it has, with memory_recursiveprot or without: so
 * the root's children have all of it. Their sum is kept by the kernel itself with each charge:
 * it is never late. What of it is page cache is not known.
 *
 * memory.low is not part of it. Where nothing else is left, reclaim takes that, too, within the
 * same call (memcg_low_reclaim), and so the driver gets it.
 *
 * Context: any.
 * Return: pages.
 */
unsigned long umacct_memcg_protected(void)
{
	unsigned long pages = 0;
#ifdef CONFIG_MEMCG
	struct cgroup_subsys_state *root;

	if (mem_cgroup_disabled() || !umacct_memcg_on_v2())
		return 0;
	rcu_read_lock();
	root = rcu_dereference(cgrp_dfl_root.cgrp.subsys[memory_cgrp_id]);
	if (root)
		pages = atomic_long_read(&mem_cgroup_from_css(root)->memory.children_min_usage);
	rcu_read_unlock();
#endif
	return pages;
}

#ifdef CONFIG_MEMCG
/*
 * How far below its high mark a counter has to stay for a charge to block, as a part
 * of the mark and as a multiple of the charge: what other tasks may take meanwhile.
 */
#define HIGH_MARGIN_PART	8
#define HIGH_MARGIN_TIMES	8

static bool is_below_high(struct page_counter *counter, unsigned long pages)
{
	unsigned long high = READ_ONCE(counter->high);

	return high == PAGE_COUNTER_MAX ||
	       page_counter_read(counter) + high / HIGH_MARGIN_PART +
	       (HIGH_MARGIN_TIMES + 1) * pages <= high;
}
#endif

/**
 * umacct_memcg_may_block() - can the current task charge memory and not be slowed for it?
 * @bytes: how much
 *
 * A task that charges above memory.high or memory.swap.high is made to sleep: in the
 * middle of the allocation if that may block, else when it returns to user space.
 *
 * Context: any.
 * Return: false if the charge may take one of the task's cgroups above.
 */
bool umacct_memcg_may_block(u64 bytes)
{
	bool may = true;
#ifdef CONFIG_MEMCG
	unsigned long pages = DIV_ROUND_UP_ULL(bytes, PAGE_SIZE);
	struct cgroup_subsys_state *css;

	preempt_disable();
	/* The root has no marks. */
	for (css = memcg_css_of_current(); css && css->parent && may; css = css->parent) {
		struct mem_cgroup *memcg = mem_cgroup_from_css(css);

		may = is_below_high(&memcg->memory, pages) && is_below_high(&memcg->swap, pages);
	}
	preempt_enable();
#endif
	return may;
}

/**
 * umacct_memcg_get_current() - the memory cgroup of the current task
 *
 * Context: any.
 * Return: it, with a reference for memcg_put(); NULL without a memory controller.
 */
struct mem_cgroup *umacct_memcg_get_current(void)
{
	struct mem_cgroup *memcg = NULL;
#ifdef CONFIG_MEMCG
	struct cgroup_subsys_state *css;

	if (mem_cgroup_disabled())
		return NULL;
	preempt_disable();
	css = memcg_css_of_current();
	if (css && css_tryget(css))
		memcg = mem_cgroup_from_css(css);
	preempt_enable();
#endif
	return memcg;
}

/**
 * umacct_memcg_on_v2() - is the memory controller on cgroup v2?
 *
 * Context: any.
 */
bool umacct_memcg_on_v2(void)
{
#ifdef CONFIG_MEMCG
	return cgroup_subsys_on_dfl(memory_cgrp_subsys);
#else
	return false;
#endif
}

/**
 * umacct_memcg_possible() - can the memory controller charge kernel memory?
 * @why: set to a sentence if not
 *
 * Context: any.
 */
bool umacct_memcg_possible(const char **why)
{
	if (!IS_ENABLED(CONFIG_MEMCG))
		*why = "this kernel has no memory controller";
	else if (mem_cgroup_disabled())
		*why = "the memory controller is switched off: cgroup_disable=memory";
	else if (!umacct_memcg_on_v2())
		*why = "the memory controller is not on cgroup v2";
	else if (!umacct_kmem_online())
		*why = "kernel memory is not charged: cgroup.memory=nokmem, or no memory cgroup yet";
	else
		return true;
	return false;
}

/**
 * umacct_memcg_comes_later() - does umacct_memcg_possible() say no only because nobody has made a
 *	cgroup with a memory controller yet?
 *
 * From the first one on the kernel accounts its own memory, unless it was told not to.
 *
 * Context: any.
 */
bool umacct_memcg_comes_later(void)
{
	bool none = false;
#ifdef CONFIG_MEMCG
	struct cgroup_subsys_state *root;

	if (mem_cgroup_disabled() || !umacct_memcg_on_v2() || umacct_kmem_online())
		return false;
	rcu_read_lock();
	root = rcu_dereference(cgrp_dfl_root.cgrp.subsys[memory_cgrp_id]);
	none = root && list_empty(&root->children);
	rcu_read_unlock();
#endif
	return none;
}
