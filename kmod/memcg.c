// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's memory controller: whether it can charge the driver's pages, and
 * what it says of a cgroup.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/page_counter.h>
#include <linux/sizes.h>

#include <umacct.h>

#include "compat.h"
#include "memcg.h"

/*
 * Reads what the memory controller says of a cgroup that can't go meanwhile. Returns false for the
 * root, and where the controller is not enabled.
 */
bool umacct_memcg_read(const struct cgroup *cgrp, struct memcg_figures *figures)
{
	bool known = false;
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
	return known;
}

/* A zone's file pages on the lists of the multi-generational LRU, which is chosen at run time. */
static unsigned long generations_pages(const struct lruvec *lruvec, int zone)
{
	unsigned long pages = 0;
#ifdef CONFIG_LRU_GEN
	int gen;

	/* A list may be below zero for a moment, where its pages were counted on another. */
	for (gen = 0; gen < MAX_NR_GENS; gen++)
		pages += max(READ_ONCE(lruvec->lrugen.nr_pages[gen][LRU_GEN_FILE][zone]), 0L);
#endif
	return pages;
}

/* Pages of page cache that count for a cgroup itself, not for one below it. */
static unsigned long file_pages(struct mem_cgroup *memcg)
{
	unsigned long pages = 0;
	int nid, zone;

	for_each_online_node(nid) {
		struct lruvec *lruvec = &memcg->nodeinfo[nid]->lruvec;

		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			pages += mem_cgroup_get_zone_lru_size(lruvec, LRU_INACTIVE_FILE, zone) +
				 mem_cgroup_get_zone_lru_size(lruvec, LRU_ACTIVE_FILE, zone) +
				 generations_pages(lruvec, zone);
	}
	return pages;
}

/*
 * Lowers @max to the lowest memory.max that holds for the current task, and @left to what is left of
 * these, in bytes. The page cache of the task's own cgroup is left, too: it is reclaimed before a
 * charge fails.
 */
void umacct_memcg_bound_current(u64 *max, u64 *left)
{
	struct cgroup_subsys_state *css;
	unsigned long cache;

	if (mem_cgroup_disabled())
		return;
	rcu_read_lock();
	css = task_css(current, memory_cgrp_id);
	cache = css->parent ? file_pages(mem_cgroup_from_css(css)) : 0;
	for (; css && css->parent; css = css->parent) {
		struct page_counter *memory = &mem_cgroup_from_css(css)->memory;
		const unsigned long most = READ_ONCE(memory->max);
		unsigned long used = page_counter_read(memory);

		if (most == PAGE_COUNTER_MAX)
			continue;
		used -= min(used, cache);
		*max = min(*max, (u64)most << PAGE_SHIFT);
		*left = min(*left, (u64)(most - min(most, used)) << PAGE_SHIFT);
	}
	rcu_read_unlock();
}

/*
 * Pages that cgroups use within their memory.min, which reclaim leaves alone. No cgroup passes on
 * more protection than it has, with memory_recursiveprot or without: so the root's children have
 * all of it. Their sum is kept by the kernel itself with each charge: it is never late. What of it
 * is page cache is not known. memory.low is not part of it. Where nothing else is left, reclaim
 * takes that, too, within the same call (memcg_low_reclaim), and so the driver gets it.
 */
unsigned long umacct_memcg_protected(void)
{
	unsigned long pages = 0;
	struct cgroup_subsys_state *root;

	if (mem_cgroup_disabled() || !umacct_memcg_on_v2())
		return 0;
	rcu_read_lock();
	root = rcu_dereference(cgrp_dfl_root.cgrp.subsys[memory_cgrp_id]);
	if (root)
		pages = atomic_long_read(&mem_cgroup_from_css(root)->memory.children_min_usage);
	rcu_read_unlock();
	return pages;
}

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

/*
 * Can the current task charge @bytes and not be slowed for it? A task that charges above
 * memory.high or memory.swap.high is made to sleep: in the middle of the allocation if that may
 * block, else when it returns to user space.
 */
bool umacct_memcg_may_block(u64 bytes)
{
	bool may = true;
	unsigned long pages = DIV_ROUND_UP_ULL(bytes, PAGE_SIZE);
	struct cgroup_subsys_state *css;

	preempt_disable();
	/* The root has no marks. */
	for (css = memcg_css_of_current(); css && css->parent && may; css = css->parent) {
		struct mem_cgroup *memcg = mem_cgroup_from_css(css);

		may = is_below_high(&memcg->memory, pages) && is_below_high(&memcg->swap, pages);
	}
	preempt_enable();
	return may;
}

/*
 * How to ask for memory that the current task is charged for. The driver may hold locks: no task is
 * killed for it, and none sleeps for being above memory.high.
 */
gfp_t umacct_memcg_gfp(u64 bytes)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;

	/* It is no reason to take what is kept for those that can't wait at all. */
	return umacct_memcg_may_block(bytes) ? gfp :
					       (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NOMEMALLOC;
}

bool umacct_memcg_charges_bytes;

/*
 * Finds the objcg that is charged for the current task's allocations, with a reference; NULL for
 * the root, and where bytes can't be charged.
 */
struct obj_cgroup *umacct_memcg_get_objcg(void)
{
	struct obj_cgroup *objcg = NULL;
	struct cgroup_subsys_state *css;

	if (!umacct_kmem_online() || !umacct_memcg_charges_bytes)
		return NULL;
	rcu_read_lock();
	preempt_disable();
	css = memcg_active() ? &memcg_active()->css : memcg_css_of_current();
	for (; css && css->parent && !objcg; css = css->parent) {
		objcg = rcu_dereference(mem_cgroup_from_css(css)->objcg);
		if (objcg && !obj_cgroup_tryget(objcg))
			objcg = NULL;
	}
	preempt_enable();
	rcu_read_unlock();
	return objcg;
}

/* The kernel's functions keep the number of bytes in 32 bits, so they get pieces of this size. */
#define OBJCG_PIECE	SZ_1G

/*
 * Has the memory controller charge another's allocation. Returns false if there is no room. One that
 * can't sleep goes above memory.max, as the kernel's own do.
 */
bool umacct_memcg_charge(struct obj_cgroup *objcg, u64 bytes, bool may_sleep)
{
	const gfp_t gfp = may_sleep ? umacct_memcg_gfp(bytes) : GFP_ATOMIC;
	u64 done, piece;

	for (done = 0; done < bytes; done += piece) {
		piece = min_t(u64, bytes - done, OBJCG_PIECE);
		if (umacct_original_obj_cgroup_charge(objcg, gfp, piece)) {
			umacct_memcg_uncharge(objcg, done);
			return false;
		}
	}
	return true;
}

/* Undoes umacct_memcg_charge(), of any number of calls. Wherever kfree() may be called. */
void umacct_memcg_uncharge(struct obj_cgroup *objcg, u64 bytes)
{
	u64 piece;

	for (; bytes; bytes -= piece) {
		piece = min_t(u64, bytes, OBJCG_PIECE);
		umacct_original_obj_cgroup_uncharge(objcg, piece);
	}
}

/*
 * The memory cgroup of the current task, with a reference for memcg_put(); NULL without a memory
 * controller.
 */
struct mem_cgroup *umacct_memcg_get_current(void)
{
	struct mem_cgroup *memcg = NULL;
	struct cgroup_subsys_state *css;

	if (mem_cgroup_disabled())
		return NULL;
	preempt_disable();
	css = memcg_css_of_current();
	if (css && css_tryget(css))
		memcg = mem_cgroup_from_css(css);
	preempt_enable();
	return memcg;
}

/* Is the memory controller on cgroup v2? */
bool umacct_memcg_on_v2(void)
{
	return cgroup_subsys_on_dfl(memory_cgrp_subsys);
}

/* Can the memory controller charge kernel memory? If not, @why is set to a sentence. */
bool umacct_memcg_can_charge(const char **why)
{
	if (mem_cgroup_disabled())
		*why = "the memory controller is switched off: cgroup_disable=memory";
	else if (!umacct_memcg_on_v2())
		*why = "the memory controller is not on cgroup v2";
	else if (!umacct_kmem_online())
		*why = "kernel memory is not charged: cgroup.memory=nokmem, or no memory cgroup yet";
	else
		return true;
	return false;
}

/*
 * Does umacct_memcg_can_charge() say no only because there is no cgroup with a memory controller yet?
 * From the first one on the kernel accounts its own memory, unless cgroup.memory= says otherwise.
 */
bool umacct_memcg_comes_later(void)
{
	bool none = false;
	struct cgroup_subsys_state *root;

	if (mem_cgroup_disabled() || !umacct_memcg_on_v2() || umacct_kmem_online())
		return false;
	rcu_read_lock();
	root = rcu_dereference(cgrp_dfl_root.cgrp.subsys[memory_cgrp_id]);
	none = root && list_empty(&root->children);
	rcu_read_unlock();
	return none;
}
