/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_MEMCG_H
#define UMACCT_MEMCG_H

#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/types.h>

#include "compat.h"

/**
 * struct memcg_figures - what the kernel's memory controller says of a cgroup
 * @current_bytes: memory.current
 * @max_bytes: memory.max, or UMACCT_UNLIMITED
 */
struct memcg_figures {
	u64 current_bytes;
	u64 max_bytes;
};

bool umacct_memcg_read(const struct cgroup *cgrp, struct memcg_figures *figures);
unsigned long umacct_memcg_protected(void);
bool umacct_memcg_may_block(u64 bytes);
bool umacct_memcg_on_v2(void);
bool umacct_memcg_possible(const char **why);
bool umacct_memcg_comes_later(void);

/*
 * What the memory controller knows the current task by, while preemption is off: that
 * is cheaper than rcu_read_lock(), and as good.
 */
static inline struct cgroup_subsys_state *memcg_css_of_current(void)
{
#ifdef CONFIG_MEMCG
	return task_css_check(current, memory_cgrp_id, !preemptible());
#else
	return NULL;
#endif
}

/**
 * memcg_charges_current() - is the current task's kernel memory charged to a cgroup?
 *
 * The root's is not.
 *
 * Context: any.
 */
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

/* What the current task has the kernel charge instead of its own cgroup, or NULL. */
static inline struct mem_cgroup *memcg_active(void)
{
#ifdef CONFIG_MEMCG
	return current->active_memcg;
#else
	return NULL;
#endif
}

/* Only for a task that has none, or back to that. */
static inline void memcg_set_active(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	current->active_memcg = memcg;
#endif
}

/* Another reference; NULL stays NULL. */
static inline struct mem_cgroup *memcg_get(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (memcg)
		css_get(&memcg->css);
#endif
	return memcg;
}

static inline void memcg_put(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (memcg)
		css_put(&memcg->css);
#endif
}

struct mem_cgroup *umacct_memcg_get_current(void);

/**
 * memcg_charges_active() - as memcg_charges_current(), where the task may work for another
 *
 * Context: preemption is off.
 */
static inline bool memcg_charges_active(void)
{
	struct cgroup_subsys_state *css;

	if (!umacct_kmem_online())
		return false;
#ifdef CONFIG_MEMCG
	if (unlikely(current->active_memcg))
		return current->active_memcg->css.parent;
#endif
	css = memcg_css_of_current();
	return css && css->parent;
}

#endif /* UMACCT_MEMCG_H */
