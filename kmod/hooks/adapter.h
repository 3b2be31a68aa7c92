/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ADAPTER_H
#define UMACCT_ADAPTER_H

#include <linux/compiler.h>
#include <linux/sched.h>

#include "hooks/call.h"
#include "hooks/hook.h"
#include "ledger/allocation.h"

extern struct hook hook_init_adapter;
extern struct hook hook_retain_gpu;

/*
 * May the current task be bringing an adapter up? Without the hook that says so, only in
 * the ioctl that asks for that. A task that opens a device may be bringing one up, too, but
 * looks like one that comes by another of the driver's modules, and no limit would hold for it.
 */
static __always_inline bool adapter_may_start(void)
{
	const struct call *call = call_current();

	if (likely(hook_armed(&hook_init_adapter)))
		return unlikely(call) && call->initialising;
	while (call && !call->penalty)
		call = call->outer;
	return call && !call->asks;
}

/**
 * kind_for_caller() - whom does the driver allocate for just now?
 * @module: the driver
 * @kind: what it is if it is for a client
 *
 * Kernel threads work for the driver, and so does a task that brings an adapter up or loads
 * the module. A thread of nvidia-uvm's works for a client where it says so by the active memcg.
 *
 * Context: process context.
 * Return: @kind or ALLOCATION_DRIVER.
 */
static __always_inline enum allocation_kind kind_for_caller(enum hook_module module,
							    enum allocation_kind kind)
{
	if (unlikely((current->flags & PF_KTHREAD) || !current->mm)) {
#ifdef CONFIG_MEMCG
		if (module == HOOK_UVM && current->active_memcg)
			return kind;
#endif
		return ALLOCATION_DRIVER;
	}
	if (unlikely(!READ_ONCE(driver_profile(module)->live) || adapter_may_start()))
		return ALLOCATION_DRIVER;
	return kind;
}

#endif /* UMACCT_ADAPTER_H */
