// SPDX-License-Identifier: GPL-2.0-only
/*
 * Managed memory: the CPU chunks of nvidia-uvm. The driver has the kernel charge
 * them itself; they are followed so that a statement of account adds up, and are
 * never limited or charged here.
 */
#include <linux/sched.h>

#include "hooks/managed.h"
#include "ledger/ledger.h"

#define NV_OK	0x00

/*
 * The release function gets the address of the chunk's reference count, which is
 * behind 8 bits of type and size. Chunks are allocated with at least this
 * alignment.
 */
#define CHUNK_ALIGN	8

static void chunk_begin(struct allocation *alloc, u64 size)
{
	*alloc = (struct allocation) { .kind = ALLOCATION_MANAGED, .bytes = size };
	ledger_begin(alloc);
}

static void chunk_end(struct allocation *alloc, u32 status, void **chunk)
{
	ledger_end(alloc, status == NV_OK, status == NV_OK ? (unsigned long)*chunk : 0, false);
}

/* uvm_cpu_chunk_alloc() in each of its layouts, as ALLOC_PAGES(). */
#define CHUNK_ALLOC(n, params, args)					\
	DECLARE_REDIRECT(u32, chunk_alloc_##n, params);			\
									\
	struct hook hook_chunk_alloc_##n = {				\
		.name = "allocate managed",				\
		.module = HOOK_UVM,					\
		.required = true,					\
		.layouts = LAYOUT_CHUNK_##n,				\
		.probe = {						\
			.symbol = "nvidia_uvm:uvm_cpu_chunk_alloc",	\
			REDIRECT(chunk_alloc_##n),			\
		},							\
	};								\
									\
	u32 replace_chunk_alloc_##n params				\
	{								\
		struct allocation alloc;				\
		u32 status;						\
									\
		probe_enter(&hook_chunk_alloc_##n.probe);		\
		chunk_begin(&alloc, size);				\
		status = original_chunk_alloc_##n args;			\
		chunk_end(&alloc, status, chunk);			\
		probe_leave(&hook_chunk_alloc_##n.probe);		\
		return status;						\
	}

CHUNK_ALLOC(3, (u32 size, u32 flags, void **chunk), (size, flags, chunk))
CHUNK_ALLOC(4, (u32 size, u32 flags, int node, void **chunk), (size, flags, node, chunk))

/*
 * cpu_chunk_release() is static: on arm64 the compiler may have given it a
 * calling convention of its own, so it is observed and not redirected. Chunks
 * that were split off another are not in the ledger.
 */
static void chunk_release(struct pt_regs *regs)
{
	ledger_free(round_down(regs_get_kernel_argument(regs, 0), CHUNK_ALIGN));
}
NOKPROBE_SYMBOL(chunk_release);

struct hook hook_chunk_free = {
	.name = "free managed",
	.module = HOOK_UVM,
	.required = true,
	.layouts = LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4,
	.probe = {
		.symbol = "nvidia_uvm:cpu_chunk_release",
		.observe = chunk_release,
	},
};
