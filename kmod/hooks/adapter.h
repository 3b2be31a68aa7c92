/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ADAPTER_H
#define UMACCT_ADAPTER_H

#include <linux/compiler.h>
#include <linux/sched.h>

#include "hooks/call.h"
#include "hooks/hook.h"
#include "ledger/allocation.h"

extern struct hook umacct_hook_init_adapter;
extern struct hook umacct_hook_retain_gpu;

/*
 * Is the current task bringing an adapter up? Without the hook that notes it, no task is: what the
 * driver takes for itself then is limited like any other request.
 */
static __always_inline bool adapter_starts(void)
{
	const struct call *call = call_current();

	return unlikely(call) && call->initialising;
}

/*
 * Is the current task loading nvidia-uvm? That has the driver below it make a client, which is there
 * for as long as the module is.
 */
static inline bool loads_uvm(void)
{
	return READ_ONCE(driver_profile(HOOK_UVM)->loader) == current;
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
	if (unlikely(!READ_ONCE(driver_profile(module)->live) || adapter_starts()))
		return ALLOCATION_DRIVER;
	return kind;
}

#endif /* UMACCT_ADAPTER_H */
