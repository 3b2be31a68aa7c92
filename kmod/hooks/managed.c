// SPDX-License-Identifier: GPL-2.0-only
/*
 * Managed memory: the pages that nvidia-uvm takes for its clients, as CPU chunks of a managed
 * range and for semaphore pools.
 *
 * The driver has the kernel charge them, but only after it was given the client's address
 * space, which nothing makes a client do. Here it is given that in any case: a process pays for
 * the memory that it populates. Only memory without a known owner is left uncharged.
 *
 * Limits hold. A refusal is an error to the ioctl that asked. On a fault there is no caller to
 * give an error to: the program that touched the memory gets SIGBUS. The kernel would try the
 * fault again for as long as it is said to be for want of memory. On a fault of a GPU, which a
 * thread of the driver's serves, see umacct_replace_find_create_block() in va_space.c.
 */
#include <linux/mm.h>
#include <linux/sched.h>

#include "hooks/adapter.h"
#include "hooks/call.h"
#include "hooks/hook.h"
#include "hooks/nv_status.h"
#include "hooks/way_out.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/record.h"
#include "memcg.h"

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

/* A task above a soft limit waits when its call or its fault is over. */
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

/* The driver asks for smaller chunks, down to a page, if there is no memory for one. */
static noinline void chunk_failed(struct chunk *record, u64 bytes, u32 status)
{
	if (bytes > PAGE_SIZE)
		umacct_chunk_end(record, bytes, false, 0);
	else
		end_failed(record, bytes, status);
}

static noinline struct chunk *chunk_begin_in_thread(u64 bytes)
{
	const struct call *call = call_current();

	return umacct_chunk_begin_in_thread(bytes, call ? call->process : NULL);
}

/* Only a page that fails is a failure, see chunk_failed(). */
static noinline void chunk_refused(u64 bytes, const struct shortage *why)
{
	if (bytes <= PAGE_SIZE)
		umacct_way_out_short(why);
	umacct_call_set_refused(true);
}

static __always_inline struct chunk *chunk_begin(u64 bytes)
{
	struct shortage why __uninitialized;
	struct chunk *record;

	if (unlikely(current->flags & PF_KTHREAD))
		return chunk_begin_in_thread(bytes);
	record = umacct_chunk_begin(bytes, true, true, &why);
	if (unlikely(!record))
		chunk_refused(bytes, &why);
	return record;
}

/* uvm_cpu_chunk_alloc() in each of its layouts, as ALLOC_PAGES(). */
#define HOOK(...)
#define CHUNK_ALLOC(n, params, args)					\
	u32 umacct_replace_chunk_alloc_##n params			\
	{								\
		INSIDE(chunk_alloc_##n);				\
		struct mem_cgroup *const active = memcg_active();	\
		u32 status = NV_ERR_NO_MEMORY;				\
		struct chunk *record;					\
									\
		/* The task pays for pages without an owner. */		\
		if (unlikely(memcg_active_is_nobodys()))		\
			memcg_set_active(NULL);				\
		record = chunk_begin(size);				\
		if (likely(record)) {					\
			/* A kernel thread without an active memcg is charged nothing. */ \
			flags |= CHUNK_FLAGS_ACCOUNT;			\
			status = umacct_original_chunk_alloc_##n args;	\
			if (likely(status == NV_OK))			\
				end_done(record, size, (unsigned long)*chunk);	\
			else						\
				chunk_failed(record, size, status);	\
		}							\
		memcg_set_active(active);				\
		return status;						\
	}
#include "hooks/hooks.h"

/*
 * cpu_chunk_release() is static, and called through a reference count alone. It calls functions
 * of other files, so no caller relies on registers that a call may change. Chunks that were
 * split off another are not in the ledger; they keep that one.
 */
void umacct_replace_chunk_release(void *refcount)
{
	INSIDE(chunk_release);
	struct chunk *record = umacct_chunk_take(round_down((unsigned long)refcount, CHUNK_ALIGN));

	umacct_original_chunk_release(refcount);
	umacct_chunk_settle(record);
}

static bool is_refused_fault(const struct call *call, vm_fault_t fault)
{
	return unlikely(call->refused) && (fault & VM_FAULT_OOM);
}

vm_fault_t umacct_replace_cpu_fault(unsigned long a, unsigned long b, unsigned long c)
{
	INSIDE(cpu_fault);
	struct call call = { 0 };
	vm_fault_t fault;

	call_begin(&call);
	fault = umacct_original_cpu_fault(a, b, c);
	call_end(&call);
	if (is_refused_fault(&call, fault))
		fault = (fault & ~VM_FAULT_OOM) | VM_FAULT_SIGBUS;
	return fault;
}

static u32 mem_alloc_for_client(const struct uvm_mem_params *params, void **mem)
{
	struct uvm_mem_params for_client;
	const u64 bytes = PAGE_ALIGN(params->size);
	struct shortage why __uninitialized;
	struct chunk *record;
	u32 status;

	if (unlikely(limit_is_impossible(params->size))) {
		struct allocation alloc = {
			.bytes = params->size,
			.page_size = PAGE_SIZE,
			.uvm = true,
		};

		umacct_ledger_refuse_impossible(&alloc);
		umacct_way_out_short(&alloc.shortage);
		return NV_ERR_NO_MEMORY;
	}
	record = umacct_chunk_begin(bytes, params->mm || current->mm, false, &why);
	if (!record) {
		umacct_way_out_short(&why);
		return NV_ERR_NO_MEMORY;
	}
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
	INSIDE(uvm_mem_alloc);

	if (params->backing_gpu)
		return umacct_original_uvm_mem_alloc(params, mem);
	if (kind_for_caller(HOOK_UVM, ALLOCATION_SYSTEM) == ALLOCATION_DRIVER)
		return mem_alloc_for_driver(params, mem);
	return mem_alloc_for_client(params, mem);
}

void umacct_replace_uvm_mem_free(void *mem)
{
	INSIDE(uvm_mem_free);
	struct chunk *record = umacct_chunk_take((unsigned long)mem);
	struct record *own = NULL;

	if (!record && mem)
		own = umacct_record_take((unsigned long)mem);
	umacct_original_uvm_mem_free(mem);
	umacct_chunk_settle(record);
	umacct_record_settle(own);
}
