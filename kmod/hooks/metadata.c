// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata: what the drivers keep because of a client, beside the pages that it asked for.
 *
 * What is large is taken by two functions of each driver, which are followed by size: an array
 * for each page of a mapping, a copy of what a client hands in, a table for a range that nobody
 * has touched. What is small and of one size is an object: its constructor and destructor are
 * followed, and what it takes is a constant of the driver's series.
 *
 * It counts for the client, under limits and for the reserve. The kernel's memory controller
 * doesn't see it: neither driver can be made to ask for that here.
 */
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sizes.h>

#include "hooks/adapter.h"
#include "hooks/call.h"
#include "hooks/metadata.h"
#include "hooks/status.h"
#include "ledger/ledger.h"

#define UVM_LAYOUTS	(LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4)

/* Above this, nvidia.ko takes whole pages from vmalloc(). */
#define OS_MEM_BOUND	SZ_128K

/* The same of nvidia-uvm's. */
#define KVMALLOC_BOUND	(4 * PAGE_SIZE)

/* What either driver puts in front of memory from vmalloc(), at most. */
#define HEADER_BYTES	16

DECLARE_REDIRECT_ABOVE(u32, os_alloc_mem, (void **address, u64 size));
DECLARE_REDIRECT_ABOVE(void, os_free_mem, (void *address));
DECLARE_REDIRECT_ABOVE(void *, kvmalloc,
		       (size_t size, const char *file, int line, const char *function));
DECLARE_REDIRECT_ABOVE(void *, kvmalloc_zero,
		       (size_t size, const char *file, int line, const char *function));
DECLARE_REDIRECT(void *, kvrealloc,
		 (void *at, size_t size, const char *file, int line, const char *function));
DECLARE_REDIRECT_ABOVE(void, kvfree, (void *at));
DECLARE_REDIRECT(u32, range_create_external,
		 (void *va_space, void *mm, u64 start, u64 length, void **range));
DECLARE_REDIRECT(u32, range_create_mmap, (void *va_space, void *mm, void *vma, void **range));
DECLARE_REDIRECT(void, range_destroy, (void *range, void *deferred));
DECLARE_REDIRECT(u32, block_create, (void *range, u64 start, u64 end, void **block));
DECLARE_REDIRECT(void, block_destroy, (void *refcount));
DECLARE_REDIRECT(u32, client_construct, (void *client, void *allocator, void *params));
DECLARE_REDIRECT(void, client_destruct, (void *client));

/**
 * metadata_begin() - a driver is about to take memory for metadata
 * @alloc: filled in
 * @module: the driver
 * @bytes: how much
 *
 * If this says yes, ledger_end() must follow.
 *
 * Context: process context, may sleep.
 * Return: false if a limit forbids it.
 */
bool metadata_begin(struct allocation *alloc, enum hook_module module, u64 bytes)
{
	*alloc = (struct allocation) {
		.bytes = bytes,
		.metadata = bytes,
		.kind = kind_for_caller(module, ALLOCATION_METADATA),
		.uvm = module == HOOK_UVM,
	};
	return ledger_begin(alloc);
}

static u64 vmalloc_bytes(u64 size)
{
	return PAGE_ALIGN(size + HEADER_BYTES);
}

/* From an interrupt or under a spinlock the driver takes nothing of this size. */
static bool may_sleep(void)
{
	return !irqs_disabled() && !preempt_count();
}

/* --- nvidia.ko ------------------------------------------------------------ */

u32 replace_os_alloc_mem(void **address, u64 size)
{
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&hook_os_alloc_mem.probe);
	if (size <= OS_MEM_BOUND || size > U64_MAX - SZ_64K || !may_sleep()) {
		status = original_os_alloc_mem(address, size);
	} else if (metadata_begin(&alloc, HOOK_NVIDIA, vmalloc_bytes(size))) {
		status = original_os_alloc_mem(address, size);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? (unsigned long)*address : 0, false);
	} else if (address) {
		*address = NULL;
	}
	probe_leave(&hook_os_alloc_mem.probe);
	return status;
}

void replace_os_free_mem(void *address)
{
	struct record *record = NULL;

	probe_enter(&hook_os_free_mem.probe);
	if (is_vmalloc_addr(address))
		record = ledger_take((unsigned long)address);
	original_os_free_mem(address);
	ledger_settle(record);
	probe_leave(&hook_os_free_mem.probe);
}

/* A client of the resource manager, in builds of the driver that keep its functions' names. */
u32 replace_client_construct(void *client, void *allocator, void *params)
{
	const u64 bytes = driver_profile(HOOK_NVIDIA)->sizes.client;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&hook_client_construct.probe);
	if (metadata_begin(&alloc, HOOK_NVIDIA, bytes)) {
		status = original_client_construct(client, allocator, params);
		ledger_end(&alloc, status == NV_OK, metadata_object(client), false);
	}
	probe_leave(&hook_client_construct.probe);
	return status;
}

void replace_client_destruct(void *client)
{
	struct record *record;

	probe_enter(&hook_client_destruct.probe);
	record = ledger_take(metadata_object(client));
	original_client_destruct(client);
	ledger_settle(record);
	probe_leave(&hook_client_destruct.probe);
}

/* --- nvidia-uvm.ko -------------------------------------------------------- */

#define KVMALLOC(which)									\
	void *replace_##which(size_t size, const char *file, int line, const char *function) \
	{										\
		struct allocation alloc;						\
		void *at = NULL;							\
											\
		probe_enter(&hook_##which.probe);					\
		if (!counts_kvmalloc(size)) {						\
			at = original_##which(size, file, line, function);		\
		} else if (metadata_begin(&alloc, HOOK_UVM, vmalloc_bytes(size))) {	\
			at = original_##which(size, file, line, function);		\
			ledger_end(&alloc, at, (unsigned long)at, false);		\
		}									\
		probe_leave(&hook_##which.probe);					\
		return at;								\
	}										\
											\
	struct hook hook_##which = {							\
		.name = "allocate UVM metadata",					\
		.module = HOOK_UVM,							\
		.layouts = UVM_LAYOUTS,							\
		.limits = true,								\
		.probe = {								\
			.symbol = "nvidia_uvm:__uvm_" #which,				\
			REDIRECT(which),							\
		},									\
	}

static bool counts_kvmalloc(size_t size)
{
	const struct call *call;

	if (size <= KVMALLOC_BOUND || size > SIZE_MAX - SZ_64K)
		return false;
	call = call_current();
	return !call || !call->within;
}

KVMALLOC(kvmalloc);
KVMALLOC(kvmalloc_zero);

/* Of a new block the driver may ask the function above, or a copy of its own. */
void *replace_kvrealloc(void *at, size_t size, const char *file, int line, const char *function)
{
	struct call call = { .within = true };
	const bool counts = counts_kvmalloc(size);
	struct allocation alloc;
	struct record *record;
	void *new = NULL;

	probe_enter(&hook_kvrealloc.probe);
	if (!counts || metadata_begin(&alloc, HOOK_UVM, vmalloc_bytes(size))) {
		record = is_vmalloc_addr(at) ? ledger_take((unsigned long)at) : NULL;
		call_begin(&call);
		new = original_kvrealloc(at, size, file, line, function);
		call_end(&call);
		/* A block that has the right size already stays where it is. */
		if (new || !size)
			ledger_settle(record);
		else
			ledger_put_back(record);
		if (counts)
			ledger_end(&alloc, new, (unsigned long)new, false);
	}
	probe_leave(&hook_kvrealloc.probe);
	return new;
}

void replace_kvfree(void *at)
{
	struct record *record = NULL;

	probe_enter(&hook_kvfree.probe);
	if (is_vmalloc_addr(at))
		record = ledger_take((unsigned long)at);
	original_kvfree(at);
	ledger_settle(record);
	probe_leave(&hook_kvfree.probe);
}

u32 replace_range_create_external(void *va_space, void *mm, u64 start, u64 length, void **range)
{
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.external;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	void *made = NULL;

	probe_enter(&hook_range_create_external.probe);
	if (metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = original_range_create_external(va_space, mm, start, length, &made);
		ledger_end(&alloc, status == NV_OK, metadata_object(made), false);
		if (status == NV_OK && range)
			*range = made;
	}
	probe_leave(&hook_range_create_external.probe);
	return status;
}

u32 replace_range_create_mmap(void *va_space, void *mm, void *vma, void **range)
{
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.managed;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	void *made = NULL;

	probe_enter(&hook_range_create_mmap.probe);
	if (metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = original_range_create_mmap(va_space, mm, vma, &made);
		ledger_end(&alloc, status == NV_OK, metadata_object(made), false);
		if (status == NV_OK && range)
			*range = made;
	}
	probe_leave(&hook_range_create_mmap.probe);
	return status;
}

void replace_range_destroy(void *range, void *deferred)
{
	struct record *record = NULL;

	probe_enter(&hook_range_destroy.probe);
	if (range)
		record = ledger_take(metadata_object(range));
	original_range_destroy(range, deferred);
	ledger_settle(record);
	probe_leave(&hook_range_destroy.probe);
}

u32 replace_block_create(void *range, u64 start, u64 end, void **block)
{
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.block;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&hook_block_create.probe);
	if (metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = original_block_create(range, start, end, block);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? metadata_object(*block) : 0, false);
	}
	probe_leave(&hook_block_create.probe);
	return status;
}

/* The reference count is a block's first member. */
void replace_block_destroy(void *refcount)
{
	struct record *record;

	probe_enter(&hook_block_destroy.probe);
	record = ledger_take(metadata_object(refcount));
	original_block_destroy(refcount);
	ledger_settle(record);
	probe_leave(&hook_block_destroy.probe);
}

/**
 * metadata_init() - set which sizes and addresses are looked at
 *
 * Context: module initialisation, before any hook is armed.
 */
void metadata_init(void)
{
	original_os_alloc_mem_bound = OS_MEM_BOUND;
	original_kvmalloc_bound = KVMALLOC_BOUND;
	original_kvmalloc_zero_bound = KVMALLOC_BOUND;
	/* What the slab allocator has lies below, on both architectures. */
	original_os_free_mem_bound = VMALLOC_START - 1;
	original_kvfree_bound = VMALLOC_START - 1;
}

struct hook hook_os_alloc_mem = {
	.name = "allocate metadata",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_alloc_mem",
		REDIRECT(os_alloc_mem),
	},
};

struct hook hook_os_free_mem = {
	.name = "free metadata",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_free_mem",
		REDIRECT(os_free_mem),
	},
};

struct hook hook_client_construct = {
	.name = "make client",
	.probe = {
		.symbol = "nvidia:rmclientConstruct_IMPL",
		REDIRECT(client_construct),
	},
};

struct hook hook_client_destruct = {
	.name = "remove client",
	.probe = {
		.symbol = "nvidia:rmclientDestruct_IMPL",
		REDIRECT(client_destruct),
	},
};

struct hook hook_kvrealloc = {
	.name = "resize UVM metadata",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:__uvm_kvrealloc",
		REDIRECT(kvrealloc),
	},
};

struct hook hook_kvfree = {
	.name = "free UVM metadata",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_kvfree",
		REDIRECT(kvfree),
	},
};

struct hook hook_range_create_external = {
	.name = "make external range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_create_external",
		REDIRECT(range_create_external),
	},
};

struct hook hook_range_create_mmap = {
	.name = "make managed range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_create_mmap",
		REDIRECT(range_create_mmap),
	},
};

struct hook hook_range_destroy = {
	.name = "remove range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_destroy",
		REDIRECT(range_destroy),
	},
};

struct hook hook_block_create = {
	.name = "make managed block",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_block_create",
		REDIRECT(block_create),
	},
};

struct hook hook_block_destroy = {
	.name = "remove managed block",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_block_destroy",
		REDIRECT(block_destroy),
	},
};
