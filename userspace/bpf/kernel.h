/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel's structures that the BPF programs read. libbpf finds each member in the
 * running kernel by its BTF; only the names have to be right here.
 */
#ifndef UMACCT_OBSERVER_KERNEL_H
#define UMACCT_OBSERVER_KERNEL_H

/* bpf_tracing.h then takes the names of registers that the kernel itself uses. */
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>

typedef _Bool bool;

#define PF_EXITING	0x00000004
#define PF_KTHREAD	0x00200000
#define CSS_ONLINE	(1 << 1)

/* A program's context; this layout is the processor's, and never changes. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

struct pt_regs {
	struct user_pt_regs user_regs;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	unsigned int flags;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
	struct cgroup *ancestors[];	/* and itself, by level */
};

typedef struct {
	long counter;
} atomic_long_t;

enum zone_watermarks {
	WMARK_LOW = 1,
};

enum zone_stat_item {
	NR_FREE_PAGES,
	NR_FREE_CMA_PAGES = 10,
};

enum node_stat_item {
	NR_INACTIVE_FILE = 2,
	NR_ACTIVE_FILE,
	NR_SLAB_RECLAIMABLE_B = 5,
	NR_KERNEL_MISC_RECLAIMABLE = 30,
};

struct zone {
	unsigned long _watermark[2];
	unsigned long watermark_boost;
	struct pglist_data *zone_pgdat;
	atomic_long_t vm_stat[1];
};

struct zoneref {
	struct zone *zone;
};

struct zonelist {
	struct zoneref _zonerefs[1];
};

struct pglist_data {
	struct zonelist node_zonelists[1];	/* the first has the zones of all nodes */
	unsigned long totalreserve_pages;
	atomic_long_t vm_stat[1];
};

struct lruvec {
	struct pglist_data *pgdat;
};

struct mem_cgroup_per_node {
	struct lruvec lruvec;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct mem_cgroup_per_node *nodeinfo[1];
};

enum cgroup_subsys_id {
	memory_cgrp_id = 1,
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

struct mm_struct;

struct task_struct {
	unsigned int flags;
	struct mm_struct *mm;
	int tgid;
	struct task_struct *group_leader;
	__u64 start_boottime;
	char comm[16];
	struct css_set *cgroups;
	struct mem_cgroup *active_memcg;
};

struct module {
	char name[56];
	const char *version;
};

#pragma clang attribute pop

#endif /* UMACCT_OBSERVER_KERNEL_H */
