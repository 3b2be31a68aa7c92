/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels that this module builds for, by feature. No
 * other file tests a kernel version.
 */
#ifndef UMACCT_COMPAT_H
#define UMACCT_COMPAT_H

#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/version.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "umacct needs Linux 6.1 or later"
#endif

#if !defined(CONFIG_X86_64) && !defined(CONFIG_ARM64)
#error "umacct knows the calling conventions of x86_64 and arm64 only"
#endif

/* The distributions' kernels have both. */
#if !defined(CONFIG_MEMCG) || !defined(CONFIG_FUNCTION_TRACER)
#error "umacct needs CONFIG_MEMCG and CONFIG_FUNCTION_TRACER"
#endif

/*
 * Unloading waits for tasks that were preempted in our text. Without this the kernel's
 * synchronize_rcu_tasks() is synchronize_rcu(), which doesn't.
 */
#if defined(CONFIG_PREEMPTION) && !defined(CONFIG_TASKS_RCU)
#error "umacct needs CONFIG_TASKS_RCU where the kernel can be preempted"
#endif

/* The kernel's headers have it since v6.5. */
#ifndef __cleanup
#define __cleanup(func)	__attribute__((__cleanup__(func)))
#endif

/* A dump's attributes moved into a struct genl_info in v6.6. */
static inline struct nlattr **umacct_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/* memcg_kmem_enabled() was renamed in v6.3. */
static inline bool umacct_kmem_online(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	return memcg_kmem_online();
#else
	return memcg_kmem_enabled();
#endif
}

/*
 * Joining our multicast group requires CAP_NET_ADMIN in the network namespace's
 * user namespace. Groups got flags of their own in v6.7 and in stable kernels
 * since; they had the flags of commands before.
 */
#ifdef GENL_MCAST_CAP_NET_ADMIN
#define UMACCT_MCAST_ADMIN	GENL_MCAST_CAP_NET_ADMIN
#else
#define UMACCT_MCAST_ADMIN	GENL_UNS_ADMIN_PERM
#endif

/*
 * The functions for direct calls that take a struct ftrace_ops lost their suffix
 * "_multi" in v6.4. Where there are no direct calls, they fail.
 */
static inline int umacct_register_direct(struct ftrace_ops *ops, unsigned long addr)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	return register_ftrace_direct(ops, addr);
#else
	return register_ftrace_direct_multi(ops, addr);
#endif
}

/* Return: an error if the function goes on calling @addr; the filter is not freed. */
static inline int umacct_unregister_direct(struct ftrace_ops *ops, unsigned long addr)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	return unregister_ftrace_direct(ops, addr, false);
#else
	return unregister_ftrace_direct_multi(ops, addr);
#endif
}

#endif /* UMACCT_COMPAT_H */
