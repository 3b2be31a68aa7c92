// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work for the machine: starting a GPU, stopping it, and its power. It runs in whatever task comes
 * along: the first to open the device, the last to close it, the one that has the machine suspend,
 * one whose call wakes a GPU that sleeps. What the driver takes for it is the driver's own: no
 * limit of that task's may stand in its way, and neither may the reserve, because a refusal would
 * lose the GPU for all programs.
 *
 * Each function here is where all ways to one kind of work pass. docs/memory.md has the ways.
 */
#include "hooks/adapter.h"
#include "hooks/call.h"

#define HOOK(...)
#define WORK_FOR_DRIVER(which, ...)						\
	unsigned long umacct_replace_##which(unsigned long a, unsigned long b,	\
					     unsigned long c, unsigned long d,	\
					     unsigned long e)			\
	{									\
		INSIDE(which);						\
		struct call call = { .for_driver = true };			\
		unsigned long result;						\
										\
		call_begin(&call);						\
		result = umacct_original_##which(a, b, c, d, e);		\
		call_end(&call);						\
		return result;							\
	}
#include "hooks/hooks.h"
