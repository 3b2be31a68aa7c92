// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bringing an adapter up. What the driver takes for that is its own, and not the task's that
 * opened the device first: no limit of that task's may stand in its way.
 */
#include "hooks/adapter.h"
#include "hooks/call.h"

DECLARE_REDIRECT(u8, init_adapter, (void *stack, void *nv));
/* What it is called with differs from series to series: three to five registers. */
DECLARE_REDIRECT(u32, retain_gpu, (unsigned long a, unsigned long b, unsigned long c,
				   unsigned long d, unsigned long e));

u8 umacct_replace_init_adapter(void *stack, void *nv)
{
	struct call call = { .initialising = true };
	u8 done;

	probe_enter(&umacct_hook_init_adapter.probe);
	call_begin(&call);
	done = umacct_original_init_adapter(stack, nv);
	call_end(&call);
	probe_leave(&umacct_hook_init_adapter.probe);
	return done;
}

struct hook umacct_hook_init_adapter = {
	.name = "initialise adapter",
	.probe = {
		.symbol = "nvidia:rm_init_adapter",
		REDIRECT(init_adapter),
	},
};

/* uvm_gpu_retain_by_uuid(): the first to register a GPU has nvidia-uvm set it up. */
u32 umacct_replace_retain_gpu(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
			      unsigned long e)
{
	struct call call = { .initialising = true };
	u32 status;

	probe_enter(&umacct_hook_retain_gpu.probe);
	call_begin(&call);
	status = umacct_original_retain_gpu(a, b, c, d, e);
	call_end(&call);
	probe_leave(&umacct_hook_retain_gpu.probe);
	return status;
}

struct hook umacct_hook_retain_gpu = {
	.name = "set up GPU for managed memory",
	.module = HOOK_UVM,
	.layouts = LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4,
	.probe = {
		.symbol = "nvidia_uvm:uvm_gpu_retain_by_uuid",
		REDIRECT(retain_gpu),
	},
};
