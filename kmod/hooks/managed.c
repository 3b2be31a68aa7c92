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
#include "hooks/nv_status.h"
#include "hooks/way_out.h"
#include "ledger/chunk.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"

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

/* Above a soft limit the task waits, when its call or its fault is over. */
static noinline void throttle(const struct chunk *record)
{
	u64 account_id = 0, penalty_ns = umacct_chunk_penalty(record, &account_id);

	if (penalty_ns)
		umacct_way_out_throttled(penalty_ns, account_id);
}

static __always_inline void end_done(struct chunk *record, u64 bytes, unsigned long key)
{
	if (unlikely(READ_ONCE(umacct_settings.throttles)))
		throttle(record);
	umacct_chunk_end(record, bytes, true, key);
}

static noinline void end_failed(struct chunk *record, u64 bytes, u32 status)
{
	const u64 account_id = umacct_chunk_account_id(record);

	umacct_chunk_end(record, bytes, false, 0);
	if (status != NV_ERR_NO_MEMORY)
		return;
	umacct_call_set_refused(false);
	if (account_id)
		umacct_way_out_failed(account_id, bytes, bytes >> PAGE_SHIFT, 1);
}

/* Where there is no memory for a chunk, the driver asks for smaller ones, down to a page. */
static noinline void chunk_failed(struct chunk *record, u64 bytes, u32 status)
{
	if (bytes > PAGE_SIZE)
		umacct_chunk_end(record, bytes, false, 0);
	else
		end_failed(record, bytes, status);
}

/* uvm_cpu_chunk_alloc() in each of its layouts, as ALLOC_PAGES(). */
#define CHUNK_ALLOC(n, params, args)					\
	DECLARE_REDIRECT(u32, chunk_alloc_##n, params);			\
									\
	struct hook umacct_hook_chunk_alloc_##n = {			\
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
	u32 umacct_replace_chunk_alloc_##n params			\
	{								\
		u32 status = NV_ERR_NO_MEMORY;				\
		struct chunk *record;					\
									\
		probe_enter(&umacct_hook_chunk_alloc_##n.probe);	\
		record = umacct_chunk_begin(size, true);		\
		if (likely(record)) {					\
			/* Of a task that works for nobody, the kernel charges nobody. */ \
			flags |= CHUNK_FLAGS_ACCOUNT;			\
			status = umacct_original_chunk_alloc_##n args;	\
			if (likely(status == NV_OK))			\
				end_done(record, size, (unsigned long)*chunk);	\
			else						\
				chunk_failed(record, size, status);	\
		} else {						\
			umacct_call_set_refused(true);			\
		}							\
		probe_leave(&umacct_hook_chunk_alloc_##n.probe);	\
		return status;						\
	}

CHUNK_ALLOC(3, (u32 size, u32 flags, void **chunk), (size, flags, chunk))
CHUNK_ALLOC(4, (u32 size, u32 flags, int node, void **chunk), (size, flags, node, chunk))

/*
 * cpu_chunk_release() is static, and called through a reference count alone. It calls functions
 * of other files, so no caller relies on registers that a call may change. Chunks that were
 * split off another are not in the ledger; they keep that one.
 */
void umacct_replace_chunk_release(void *refcount)
{
	struct chunk *record;

	probe_enter(&umacct_hook_chunk_free.probe);
	record = umacct_chunk_take(round_down((unsigned long)refcount, CHUNK_ALIGN));
	umacct_original_chunk_release(refcount);
	umacct_chunk_settle(record);
	probe_leave(&umacct_hook_chunk_free.probe);
}

static bool is_refused_fault(const struct call *call, vm_fault_t fault)
{
	return unlikely(call->refused) && (fault & VM_FAULT_OOM);
}

vm_fault_t umacct_replace_cpu_fault(unsigned long a, unsigned long b, unsigned long c)
{
	struct call call = { 0 };
	vm_fault_t fault;

	probe_enter(&umacct_hook_cpu_fault.probe);
	call_begin(&call);
	fault = umacct_original_cpu_fault(a, b, c);
	call_end(&call);
	if (is_refused_fault(&call, fault))
		fault = (fault & ~VM_FAULT_OOM) | VM_FAULT_SIGBUS;
	probe_leave(&umacct_hook_cpu_fault.probe);
	return fault;
}

static u32 mem_alloc_for_client(const struct uvm_mem_params *params, void **mem)
{
	struct uvm_mem_params for_client;
	const u64 bytes = PAGE_ALIGN(params->size);
	struct chunk *record;
	u32 status;

	if (unlikely(limit_is_impossible(params->size))) {
		struct allocation alloc = {
			.bytes = params->size,
			.page_size = PAGE_SIZE,
			.uvm = true,
		};

		umacct_ledger_refuse_impossible(&alloc);
		return NV_ERR_NO_MEMORY;
	}
	record = umacct_chunk_begin(bytes, params->mm || current->mm);
	if (!record)
		return NV_ERR_NO_MEMORY;
	if (!params->mm && current->mm) {
		for_client = *params;
		for_client.mm = current->mm;
		params = &for_client;
	}
	status = umacct_original_uvm_mem_alloc(params, mem);
	if (likely(status == NV_OK))
		end_done(record, bytes, (unsigned long)*mem);
	else
		end_failed(record, bytes, status);
	return status;
}

static u32 mem_alloc_for_driver(const struct uvm_mem_params *params, void **mem)
{
	struct allocation alloc = {
		.kind = ALLOCATION_DRIVER,
		.bytes = PAGE_ALIGN(params->size),
		.page_size = PAGE_SIZE,
		.uvm = true,
	};
	u32 status;

	if (!ledger_begin(&alloc))
		return NV_ERR_NO_MEMORY;
	status = umacct_original_uvm_mem_alloc(params, mem);
	ledger_end(&alloc, status == NV_OK, status == NV_OK ? (unsigned long)*mem : 0, false);
	return status;
}

/* A GPU's own memory is left as it is. */
u32 umacct_replace_uvm_mem_alloc(const struct uvm_mem_params *params, void **mem)
{
	u32 status;

	probe_enter(&umacct_hook_uvm_mem_alloc.probe);
	if (params->backing_gpu)
		status = umacct_original_uvm_mem_alloc(params, mem);
	else if (kind_for_caller(HOOK_UVM, ALLOCATION_SYSTEM) == ALLOCATION_DRIVER)
		status = mem_alloc_for_driver(params, mem);
	else
		status = mem_alloc_for_client(params, mem);
	probe_leave(&umacct_hook_uvm_mem_alloc.probe);
	return status;
}

void umacct_replace_uvm_mem_free(void *mem)
{
	struct record *own = NULL;
	struct chunk *record;

	probe_enter(&umacct_hook_uvm_mem_free.probe);
	record = umacct_chunk_take((unsigned long)mem);
	if (!record && mem)
		own = umacct_ledger_take((unsigned long)mem);
	umacct_original_uvm_mem_free(mem);
	umacct_chunk_settle(record);
	umacct_ledger_settle(own);
	probe_leave(&umacct_hook_uvm_mem_free.probe);
}

struct hook umacct_hook_chunk_free = {
	.name = "free managed",
	.module = HOOK_UVM,
	.required = true,
	.layouts = UVM_LAYOUTS,
	.probe = {
		.symbol = "nvidia_uvm:cpu_chunk_release",
		REDIRECT(chunk_release),
	},
};

struct hook umacct_hook_cpu_fault = {
	.name = "fault on managed",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_space_cpu_fault_managed",
		REDIRECT(cpu_fault),
	},
};

struct hook umacct_hook_uvm_mem_alloc = {
	.name = "allocate UVM pool",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_mem_alloc",
		REDIRECT(uvm_mem_alloc),
	},
};

struct hook umacct_hook_uvm_mem_free = {
	.name = "free UVM pool",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_mem_free",
		REDIRECT(uvm_mem_free),
	},
};
