// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bringing an adapter up. What the driver takes for that is its own, whoever opened
 * the device first, and nobody's limit may stand in its way.
 */
#include "hooks/adapter.h"
#include "hooks/call.h"

DECLARE_REDIRECT(u8, init_adapter, (void *stack, void *nv));

u8 replace_init_adapter(void *stack, void *nv)
{
	struct call call = { .initialising = true };
	u8 done;

	probe_enter(&hook_init_adapter.probe);
	call_begin(&call);
	done = original_init_adapter(stack, nv);
	call_end(&call);
	probe_leave(&hook_init_adapter.probe);
	return done;
}

struct hook hook_init_adapter = {
	.name = "initialise adapter",
	.probe = {
		.symbol = "nvidia:rm_init_adapter",
		REDIRECT(init_adapter),
	},
};
