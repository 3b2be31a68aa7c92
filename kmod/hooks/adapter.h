/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ADAPTER_H
#define UMACCT_ADAPTER_H

#include <linux/compiler.h>
#include <linux/sched.h>

#include "hooks/call.h"
#include "hooks/hook.h"
#include "ledger/client.h"

/*
 * Does the current task do the driver's own work, see adapter.c? Without the hook that notes it, no
 * task does: what the driver takes for itself then is limited like any other request.
 */
static __always_inline bool works_for_driver(void)
{
	const struct call *call = call_current();

	return unlikely(call) && call->for_driver;
}

/*
 * Is the current task loading nvidia-uvm? That has the driver below it make a client, which is there
 * for as long as the module is.
 */
static inline bool loads_uvm(void)
{
	return READ_ONCE(driver_profile(HOOK_UVM)->loader) == current;
}

/*
 * Says for what the driver allocates just now: @kind, which is for a client, or ALLOCATION_DRIVER.
 * Kernel threads work for the driver, and so does a task that starts, stops or powers a GPU, or
 * loads the module. A thread of nvidia-uvm's works for a client where it says so by the active
 * memcg.
 */
static __always_inline enum allocation_kind kind_for_caller(enum hook_module module,
							    enum allocation_kind kind)
{
	if (unlikely((current->flags & PF_KTHREAD) || !current->mm)) {
		if (module == HOOK_UVM && current->active_memcg)
			return kind;
		return ALLOCATION_DRIVER;
	}
	if (unlikely(!READ_ONCE(driver_profile(module)->live) || works_for_driver()))
		return ALLOCATION_DRIVER;
	return kind;
}

#endif /* UMACCT_ADAPTER_H */
