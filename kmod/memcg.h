/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_MEMCG_H
#define UMACCT_MEMCG_H

#include <linux/cgroup.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/types.h>

#include "compat.h"

/* A cgroup's memory.current and memory.max, which may be UMACCT_UNLIMITED. */
struct memcg_figures {
	u64 current_bytes;
	u64 max_bytes;
};

bool umacct_memcg_read(const struct cgroup *cgrp, struct memcg_figures *figures);
void umacct_memcg_bound_current(u64 *max, u64 *left);
unsigned long umacct_memcg_protected(void);
bool umacct_memcg_may_block(u64 bytes);
bool umacct_memcg_on_v2(void);
bool umacct_memcg_can_charge(const char **why);
bool umacct_memcg_comes_later(void);

/*
 * The memory controller's handle of the current task, while preemption is off: that
 * is cheaper than rcu_read_lock(), and as good.
 */
static inline struct cgroup_subsys_state *memcg_css_of_current(void)
{
	return task_css_check(current, memory_cgrp_id, !preemptible());
}

/* Is the current task's kernel memory charged to a cgroup? The root's is not. */
static inline bool memcg_charges_current(void)
{
	struct cgroup_subsys_state *css;
	bool charges;

	if (!umacct_kmem_online())
		return false;
	preempt_disable();
	css = memcg_css_of_current();
	charges = css && css->parent;
	preempt_enable();
	return charges;
}

/* The cgroup that is charged instead of the current task's own, or NULL. */
static inline struct mem_cgroup *memcg_active(void)
{
	return current->active_memcg;
}

/*
 * Does the current task, which works for a process, have the kernel charge the root, and so no
 * cgroup? So it is where it fills an address space that no process owns any more.
 */
static inline bool memcg_active_is_nobodys(void)
{
	const struct mem_cgroup *active = memcg_active();

	return unlikely(active) && !active->css.parent && current->mm &&
	       !(current->flags & PF_KTHREAD);
}

/* Only for a task without one, or whose one is the root's; and back to that. */
static inline void memcg_set_active(struct mem_cgroup *memcg)
{
	current->active_memcg = memcg;
}

/* Another reference; NULL stays NULL. */
static inline struct mem_cgroup *memcg_get(struct mem_cgroup *memcg)
{
	if (memcg)
		css_get(&memcg->css);
	return memcg;
}

static inline void memcg_put(struct mem_cgroup *memcg)
{
	if (memcg)
		css_put(&memcg->css);
}

struct mem_cgroup *umacct_memcg_get_current(void);
gfp_t umacct_memcg_gfp(u64 bytes);
struct obj_cgroup *umacct_memcg_get_objcg(void);
bool umacct_memcg_charge(struct obj_cgroup *objcg, u64 bytes, bool may_sleep);
void umacct_memcg_uncharge(struct obj_cgroup *objcg, u64 bytes);

/*
 * The kernel's functions that charge bytes of another's allocation, as for percpu memory, where
 * it has them: see umacct_charge_init().
 */
extern bool umacct_memcg_charges_bytes;
extern unsigned long umacct_original_obj_cgroup_charge_entry;
extern unsigned long umacct_original_obj_cgroup_uncharge_entry;
int umacct_original_obj_cgroup_charge(struct obj_cgroup *objcg, gfp_t gfp, size_t bytes);
void umacct_original_obj_cgroup_uncharge(struct obj_cgroup *objcg, size_t bytes);

/* The same, where the task may work for another. Preemption is off. */
static inline bool memcg_charges_active(void)
{
	struct cgroup_subsys_state *css;

	if (!umacct_kmem_online())
		return false;
	if (unlikely(current->active_memcg) && !memcg_active_is_nobodys())
		return current->active_memcg->css.parent;
	css = memcg_css_of_current();
	return css && css->parent;
}

#endif /* UMACCT_MEMCG_H */
