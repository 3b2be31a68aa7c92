// SPDX-License-Identifier: GPL-2.0-only
/*
 * Managed memory: the pages that nvidia-uvm takes for its clients, as CPU chunks of a managed
 * range and for semaphore pools.
 *
 * The driver has the kernel charge them, but only where it was told of the client's address
 * space, which nothing makes a client do. Here it is told in any case: a process pays for what
 * it has populated. What is left uncharged is what nobody can be found for.
 *
 * Limits hold. A refusal is an error to the ioctl that asked. On a fault there is nobody to
 * give an error to: the program that touched the memory gets SIGBUS. The kernel would try the
 * fault again for as long as it is said to be for want of memory.
 */
#include <linux/mm.h>
#include <linux/sched.h>

#include "hooks/adapter.h"
#include "hooks/call.h"
#include "hooks/managed.h"
#include "hooks/status.h"
#include "ledger/ledger.h"
#include "memcg.h"

#define UVM_LAYOUTS		(LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4)

/* UVM_CPU_CHUNK_ALLOC_FLAGS_ACCOUNT */
#define CHUNK_FLAGS_ACCOUNT	BIT(1)

/*
 * The release function gets the address of the chunk's reference count, which is
 * behind 8 bits of type and size. Chunks are allocated with at least this
 * alignment.
 */
#define CHUNK_ALIGN		8

/*
 * uvm_mem_alloc_params_t. From 570 on @page_size has 64 bits; the two flags are the last
 * members in any case.
 */
struct uvm_mem_params {
	void *backing_gpu;
	void *dma_owner;
	u64 size;
	struct mm_struct *mm;
	u64 page_size;
	u64 flags;
};

DECLARE_REDIRECT(u32, uvm_mem_alloc, (const struct uvm_mem_params *params, void **mem));
DECLARE_REDIRECT(void, uvm_mem_free, (void *mem));
DECLARE_REDIRECT(void, chunk_release, (void *refcount));
/* (va_space, vma, vmf), from 570 on (va_space, vmf) */
DECLARE_REDIRECT(vm_fault_t, cpu_fault, (unsigned long a, unsigned long b, unsigned long c));

/* Some process pays for it. */
static bool works_for_client(void)
{
#ifdef CONFIG_MEMCG
	if (current->active_memcg)
		return true;
#endif
	return current->mm && !(current->flags & PF_KTHREAD);
}

static bool chunk_begin(struct allocation *alloc, u64 size, u32 *flags)
{
	struct call *call;

	*alloc = (struct allocation) {
		.kind = ALLOCATION_MANAGED,
		.bytes = size,
		.page_size = size,
		.uvm = true,
	};
	if (works_for_client())
		*flags |= CHUNK_FLAGS_ACCOUNT;
	if (likely(ledger_begin(alloc)))
		return true;
	call = call_current();
	if (call)
		call->refused = true;
	return false;
}

static void chunk_end(struct allocation *alloc, u32 status, u32 flags, void **chunk)
{
	bool charged = (flags & CHUNK_FLAGS_ACCOUNT) && memcg_charges_active();

	ledger_end(alloc, status == NV_OK, status == NV_OK ? (unsigned long)*chunk : 0, charged);
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
		u32 status = NV_ERR_NO_MEMORY;				\
									\
		probe_enter(&hook_chunk_alloc_##n.probe);		\
		if (chunk_begin(&alloc, size, &flags)) {		\
			status = original_chunk_alloc_##n args;		\
			chunk_end(&alloc, status, flags, chunk);	\
		}							\
		probe_leave(&hook_chunk_alloc_##n.probe);		\
		return status;						\
	}

CHUNK_ALLOC(3, (u32 size, u32 flags, void **chunk), (size, flags, chunk))
CHUNK_ALLOC(4, (u32 size, u32 flags, int node, void **chunk), (size, flags, node, chunk))

/*
 * cpu_chunk_release() is static, and called through a reference count alone. It calls functions
 * of other files, so no caller relies on registers that a call may change. Chunks that were
 * split off another are not in the ledger; they keep that one.
 */
void replace_chunk_release(void *refcount)
{
	struct record *record;

	probe_enter(&hook_chunk_free.probe);
	record = ledger_take(round_down((unsigned long)refcount, CHUNK_ALIGN));
	original_chunk_release(refcount);
	ledger_settle(record);
	probe_leave(&hook_chunk_free.probe);
}

static bool is_refused_fault(const struct call *call, vm_fault_t fault)
{
	return unlikely(call->refused) && (fault & VM_FAULT_OOM);
}

vm_fault_t replace_cpu_fault(unsigned long a, unsigned long b, unsigned long c)
{
	struct call call = { 0 };
	vm_fault_t fault;

	probe_enter(&hook_cpu_fault.probe);
	call_begin(&call);
	fault = original_cpu_fault(a, b, c);
	call_end(&call);
	if (is_refused_fault(&call, fault))
		fault = (fault & ~VM_FAULT_OOM) | VM_FAULT_SIGBUS;
	probe_leave(&hook_cpu_fault.probe);
	return fault;
}

/* What nvidia-uvm takes for itself, and a GPU's own memory, is left as it is. */
u32 replace_uvm_mem_alloc(const struct uvm_mem_params *params, void **mem)
{
	struct uvm_mem_params for_client;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc = {
		.kind = kind_for_caller(HOOK_UVM, ALLOCATION_MANAGED),
		.bytes = PAGE_ALIGN(params->size),
		.page_size = PAGE_SIZE,
		.uvm = true,
	};
	bool charged;

	probe_enter(&hook_uvm_mem_alloc.probe);
	if (params->backing_gpu) {
		status = original_uvm_mem_alloc(params, mem);
	} else if (ledger_begin(&alloc)) {
		if (!params->mm && alloc.kind != ALLOCATION_DRIVER && current->mm) {
			for_client = *params;
			for_client.mm = current->mm;
			params = &for_client;
		}
		charged = params->mm && memcg_charges_current();
		status = original_uvm_mem_alloc(params, mem);
		ledger_end(&alloc, status == NV_OK, status == NV_OK ? (unsigned long)*mem : 0,
			   charged);
	}
	probe_leave(&hook_uvm_mem_alloc.probe);
	return status;
}

void replace_uvm_mem_free(void *mem)
{
	struct record *record = NULL;

	probe_enter(&hook_uvm_mem_free.probe);
	if (mem)
		record = ledger_take((unsigned long)mem);
	original_uvm_mem_free(mem);
	ledger_settle(record);
	probe_leave(&hook_uvm_mem_free.probe);
}

struct hook hook_chunk_free = {
	.name = "free managed",
	.module = HOOK_UVM,
	.required = true,
	.layouts = UVM_LAYOUTS,
	.probe = {
		.symbol = "nvidia_uvm:cpu_chunk_release",
		REDIRECT(chunk_release),
	},
};

struct hook hook_cpu_fault = {
	.name = "fault on managed",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_space_cpu_fault_managed",
		REDIRECT(cpu_fault),
	},
};

struct hook hook_uvm_mem_alloc = {
	.name = "allocate UVM pool",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_mem_alloc",
		REDIRECT(uvm_mem_alloc),
	},
};

struct hook hook_uvm_mem_free = {
	.name = "free UVM pool",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_mem_free",
		REDIRECT(uvm_mem_free),
	},
};
