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
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sizes.h>

#include "hooks/adapter.h"
#include "hooks/bounds.h"
#include "hooks/call.h"
#include "hooks/metadata.h"
#include "hooks/nv_status.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"

#define UVM_LAYOUTS	(LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4)

/* Above this, nvidia-uvm takes whole pages from vmalloc(). */
#define KVMALLOC_BOUND	(KVMALLOC_BOUND_PAGES * PAGE_SIZE)

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
DECLARE_REDIRECT(u32, range_create_pool,
		 (void *va_space, void *mm, u64 start, u64 length, const void *attributes,
		  u32 nr_attributes, void **range));
DECLARE_REDIRECT(u32, range_create_mmap, (void *va_space, void *mm, void *vma, void **range));
DECLARE_REDIRECT(u32, range_split, (void *range, u64 new_end, void **new));
DECLARE_REDIRECT(void, range_destroy, (void *range, void *deferred));
DECLARE_REDIRECT(u32, block_create, (void *range, u64 start, u64 end, void **block));
DECLARE_REDIRECT(void, block_destroy, (void *refcount));
DECLARE_REDIRECT(int, device_open, (struct inode *inode, struct file *file));
DECLARE_REDIRECT(int, device_close, (struct inode *inode, struct file *file));
DECLARE_REDIRECT(u32, client_construct, (void *client, void *allocator, void *params));
DECLARE_REDIRECT(void, client_destruct, (void *client));
DECLARE_REDIRECT(u32, event_construct, (void *event, void *context, void *params));
DECLARE_REDIRECT(void, event_destruct, (void *event));
DECLARE_REDIRECT(u32, event_api_construct, (void *event, void *context, void *params));
DECLARE_REDIRECT(void, event_api_destruct, (void *event));
DECLARE_REDIRECT(u32, copy_construct, (void *memory, void *context, void *params));
DECLARE_REDIRECT(void, copy_destruct, (void *memory));
DECLARE_REDIRECT(u32, lock_user_pages, (void *address, u64 pages, void **array, u32 flags));
/* Without @flags up to 550. */
DECLARE_REDIRECT(u32, unlock_user_pages, (u64 pages, void *array, u32 flags));
DECLARE_REDIRECT(u32, look_up_user_io, (void *address, u64 pages, u64 **array));
DECLARE_REDIRECT(int, uvm_device_open, (struct inode *inode, struct file *file));
DECLARE_REDIRECT(int, uvm_device_close, (struct inode *inode, struct file *file));

/**
 * umacct_metadata_begin() - a driver is about to take memory for metadata
 * @alloc: filled in
 * @module: the driver
 * @bytes: how much
 *
 * If this says yes, ledger_end() must follow.
 *
 * Context: process context, may sleep.
 * Return: false if a limit forbids it.
 */
bool umacct_metadata_begin(struct allocation *alloc, enum hook_module module, u64 bytes)
{
	*alloc = (struct allocation) {
		.bytes = bytes,
		.metadata = bytes,
		.kind = loads_uvm() ? ALLOCATION_DRIVER :
				      kind_for_caller(module, ALLOCATION_METADATA),
		.uvm = module == HOOK_UVM,
	};
	if (unlikely(limit_is_impossible(bytes)))
		umacct_ledger_refuse_impossible(alloc);
	else if (likely(ledger_begin(alloc)))
		return true;
	/* A fault may need it: see umacct_replace_cpu_fault(). */
	if (module == HOOK_UVM)
		umacct_call_set_refused(true);
	return false;
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

/* An open file of a device of the driver's: the kernel charges its own part itself. */
#define DEVICE(which, hooked, size)							\
	int umacct_replace_##which##_open(struct inode *inode, struct file *file)	\
	{									\
		const u64 bytes = driver_profile(hooked)->sizes.size;		\
		struct allocation alloc;					\
		int err = -ENOMEM;						\
										\
		probe_enter(&umacct_hook_##which##_open.probe);			\
		if (umacct_metadata_begin(&alloc, hooked, bytes)) {		\
			err = umacct_original_##which##_open(inode, file);	\
			ledger_end(&alloc, !err, metadata_object(file), false);	\
		}								\
		probe_leave(&umacct_hook_##which##_open.probe);			\
		return err;							\
	}									\
										\
	int umacct_replace_##which##_close(struct inode *inode, struct file *file)	\
	{									\
		struct record *record;						\
		int err;							\
										\
		probe_enter(&umacct_hook_##which##_close.probe);		\
		record = umacct_ledger_take(metadata_object(file));		\
		err = umacct_original_##which##_close(inode, file);		\
		umacct_ledger_settle(record);					\
		probe_leave(&umacct_hook_##which##_close.probe);		\
		return err;							\
	}

DEVICE(device, HOOK_NVIDIA, file)
DEVICE(uvm_device, HOOK_UVM, uvm_file)

/* --- nvidia.ko ------------------------------------------------------------ */

u32 umacct_replace_os_alloc_mem(void **address, u64 size)
{
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&umacct_hook_os_alloc_mem.probe);
	if (size <= OS_MEM_BOUND || size > U64_MAX - SZ_64K || !may_sleep()) {
		status = umacct_original_os_alloc_mem(address, size);
	} else if (umacct_metadata_begin(&alloc, HOOK_NVIDIA, vmalloc_bytes(size))) {
		status = umacct_original_os_alloc_mem(address, size);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? (unsigned long)*address : 0, false);
	} else if (address) {
		*address = NULL;
	}
	probe_leave(&umacct_hook_os_alloc_mem.probe);
	return status;
}

void umacct_replace_os_free_mem(void *address)
{
	struct record *record = NULL;

	probe_enter(&umacct_hook_os_free_mem.probe);
	if (is_vmalloc_addr(address))
		record = umacct_ledger_take((unsigned long)address);
	umacct_original_os_free_mem(address);
	umacct_ledger_settle(record);
	probe_leave(&umacct_hook_os_free_mem.probe);
}

/* A client of the resource manager, in builds of the driver that keep its functions' names. */
u32 umacct_replace_client_construct(void *client, void *allocator, void *params)
{
	const u64 bytes = driver_profile(HOOK_NVIDIA)->sizes.client;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&umacct_hook_client_construct.probe);
	if (umacct_metadata_begin(&alloc, HOOK_NVIDIA, bytes)) {
		status = umacct_original_client_construct(client, allocator, params);
		ledger_end(&alloc, status == NV_OK, metadata_object(client), false);
	}
	probe_leave(&umacct_hook_client_construct.probe);
	return status;
}

void umacct_replace_client_destruct(void *client)
{
	struct record *record;

	probe_enter(&umacct_hook_client_destruct.probe);
	record = umacct_ledger_take(metadata_object(client));
	umacct_original_client_destruct(client);
	umacct_ledger_settle(record);
	probe_leave(&umacct_hook_client_destruct.probe);
}

/*
 * Objects of the resource manager that have no pages of their own, likewise: events, and further
 * objects of another's memory.
 */
#define RESOURCE(which)								\
	u32 umacct_replace_##which##_construct(void *resource, void *context, void *params) \
	{									\
		const u64 bytes = driver_profile(HOOK_NVIDIA)->sizes.resource;	\
		u32 status = NV_ERR_NO_MEMORY;					\
		struct allocation alloc;					\
										\
		probe_enter(&umacct_hook_##which##_construct.probe);		\
		if (umacct_metadata_begin(&alloc, HOOK_NVIDIA, bytes)) {	\
			status = umacct_original_##which##_construct(resource, context, params); \
			ledger_end(&alloc, status == NV_OK, metadata_object(resource), false); \
		}								\
		probe_leave(&umacct_hook_##which##_construct.probe);		\
		return status;							\
	}									\
										\
	void umacct_replace_##which##_destruct(void *resource)			\
	{									\
		struct record *record;						\
										\
		probe_enter(&umacct_hook_##which##_destruct.probe);		\
		record = umacct_ledger_take(metadata_object(resource));		\
		umacct_original_##which##_destruct(resource);			\
		umacct_ledger_settle(record);					\
		probe_leave(&umacct_hook_##which##_destruct.probe);		\
	}

RESOURCE(event)
RESOURCE(event_api)
RESOURCE(copy)

/*
 * A program's own memory that it registers: an array with an entry for each page, which the driver
 * takes before it looks whether there is such memory, and keeps as long as it does.
 */
u32 umacct_replace_lock_user_pages(void *address, u64 pages, void **array, u32 flags)
{
	const u64 bytes = user_pages_bytes(pages);
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&umacct_hook_lock_user_pages.probe);
	if (!bytes) {
		status = umacct_original_lock_user_pages(address, pages, array, flags);
	} else if (umacct_metadata_begin(&alloc, HOOK_NVIDIA, bytes)) {
		status = umacct_original_lock_user_pages(address, pages, array, flags);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? metadata_object(*array) : 0, false);
	}
	probe_leave(&umacct_hook_lock_user_pages.probe);
	return status;
}

u32 umacct_replace_unlock_user_pages(u64 pages, void *array, u32 flags)
{
	struct record *record;
	u32 status;

	probe_enter(&umacct_hook_unlock_user_pages.probe);
	record = umacct_ledger_take(metadata_object(array));
	status = umacct_original_unlock_user_pages(pages, array, flags);
	umacct_ledger_settle(record);
	probe_leave(&umacct_hook_unlock_user_pages.probe);
	return status;
}

/* The same, for a mapping of a device's memory: counted while it is looked for. */
u32 umacct_replace_look_up_user_io(void *address, u64 pages, u64 **array)
{
	const u64 bytes = user_pages_bytes(pages);
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&umacct_hook_look_up_user_io.probe);
	if (!bytes) {
		status = umacct_original_look_up_user_io(address, pages, array);
	} else if (umacct_metadata_begin(&alloc, HOOK_NVIDIA, bytes)) {
		status = umacct_original_look_up_user_io(address, pages, array);
		ledger_end(&alloc, false, 0, false);
	}
	probe_leave(&umacct_hook_look_up_user_io.probe);
	return status;
}

/* --- nvidia-uvm.ko -------------------------------------------------------- */

/**
 * struct range_arrays - the arrays that a range of managed memory has, and another one keeps
 * @array: that of the range that is being made, from the slab allocator
 * @shortened: that of the range being split, once it fits into the slab allocator
 * @has_array: there is @array
 * @has_shortened: there is @shortened
 *
 * Their free is not seen: they stay in the ledger as long as the range does. Arrays from the slab
 * allocator stay as large as they were made.
 */
struct range_arrays {
	struct allocation array;
	struct allocation shortened;
	bool has_array;
	bool has_shortened;
};

static unsigned long key_of_array(const void *range)
{
	return (unsigned long)range + 2;
}

static unsigned long key_of_shortened(const void *range)
{
	return (unsigned long)range + 3;
}

/* Sizes of the slab allocator's, at these sizes. */
static u64 slab_bytes(size_t size)
{
	return roundup_pow_of_two(size);
}

static struct range_arrays *arrays_of_call(size_t size)
{
	const struct call *call;

	if (size <= ARRAY_BOUND || size > KVMALLOC_BOUND)
		return NULL;
	call = call_current();
	return call ? call->arrays : NULL;
}

static struct range_arrays *wants_array(size_t size)
{
	struct range_arrays *arrays = arrays_of_call(size);

	return arrays && !arrays->has_array ? arrays : NULL;
}

/* One that was not the slab allocator's. */
static struct range_arrays *wants_shortened(const void *from, size_t size)
{
	struct range_arrays *arrays = is_vmalloc_addr(from) ? arrays_of_call(size) : NULL;

	return arrays && !arrays->has_shortened ? arrays : NULL;
}

/* Return: whether the driver has it; range_create_mmap() and range_split() see to it then. */
static bool array_end(struct allocation *alloc, const void *at)
{
	if (!at)
		ledger_end(alloc, false, 0, false);
	return at;
}

#define KVMALLOC(which)									\
	void *umacct_replace_##which(size_t size, const char *file, int line,		\
				     const char *function)				\
	{										\
		struct range_arrays *arrays;						\
		struct allocation alloc;						\
		void *at = NULL;							\
											\
		probe_enter(&umacct_hook_##which.probe);				\
		arrays = wants_array(size);						\
		if (arrays) {								\
			if (umacct_metadata_begin(&arrays->array, HOOK_UVM, slab_bytes(size))) { \
				at = umacct_original_##which(size, file, line, function); \
				arrays->has_array = array_end(&arrays->array, at);	\
			}								\
		} else if (!counts_kvmalloc(size)) {					\
			at = umacct_original_##which(size, file, line, function);	\
		} else if (umacct_metadata_begin(&alloc, HOOK_UVM, vmalloc_bytes(size))) { \
			at = umacct_original_##which(size, file, line, function);	\
			ledger_end(&alloc, at, (unsigned long)at, false);		\
		}									\
		probe_leave(&umacct_hook_##which.probe);				\
		return at;								\
	}										\
											\
	struct hook umacct_hook_##which = {						\
		.name = "allocate UVM metadata",					\
		.module = HOOK_UVM,							\
		.layouts = UVM_LAYOUTS,							\
		.limits = true,								\
		.probe = {								\
			.symbol = "nvidia_uvm:__uvm_" #which,				\
			REDIRECT(which),						\
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
void *umacct_replace_kvrealloc(void *at, size_t size, const char *file, int line,
			       const char *function)
{
	struct range_arrays *arrays = wants_shortened(at, size);
	const bool counts = !arrays && counts_kvmalloc(size);
	const u64 bytes = arrays ? slab_bytes(size) : vmalloc_bytes(size);
	struct allocation own, *alloc = arrays ? &arrays->shortened : &own;
	struct call call = { .within = true };
	struct record *record;
	void *new = NULL;

	probe_enter(&umacct_hook_kvrealloc.probe);
	if ((!arrays && !counts) || umacct_metadata_begin(alloc, HOOK_UVM, bytes)) {
		record = is_vmalloc_addr(at) ? umacct_ledger_take((unsigned long)at) : NULL;
		call_begin(&call);
		new = umacct_original_kvrealloc(at, size, file, line, function);
		call_end(&call);
		/* A block that has the right size already stays where it is. */
		if (new || !size)
			umacct_ledger_settle(record);
		else
			umacct_ledger_put_back(record);
		if (arrays)
			arrays->has_shortened = array_end(alloc, new);
		else if (counts)
			ledger_end(alloc, new, (unsigned long)new, false);
	}
	probe_leave(&umacct_hook_kvrealloc.probe);
	return new;
}

void umacct_replace_kvfree(void *at)
{
	struct record *record = NULL;

	probe_enter(&umacct_hook_kvfree.probe);
	if (is_vmalloc_addr(at))
		record = umacct_ledger_take((unsigned long)at);
	umacct_original_kvfree(at);
	umacct_ledger_settle(record);
	probe_leave(&umacct_hook_kvfree.probe);
}

u32 umacct_replace_range_create_external(void *va_space, void *mm, u64 start, u64 length,
					 void **range)
{
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.external;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	void *made = NULL;

	probe_enter(&umacct_hook_range_create_external.probe);
	if (umacct_metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = umacct_original_range_create_external(va_space, mm, start, length, &made);
		ledger_end(&alloc, status == NV_OK, metadata_object(made), false);
		if (status == NV_OK && range)
			*range = made;
	}
	probe_leave(&umacct_hook_range_create_external.probe);
	return status;
}

u32 umacct_replace_range_create_pool(void *va_space, void *mm, u64 start, u64 length,
				     const void *attributes, u32 nr_attributes, void **range)
{
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.pool;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	void *made = NULL;

	probe_enter(&umacct_hook_range_create_pool.probe);
	if (umacct_metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = umacct_original_range_create_pool(va_space, mm, start, length, attributes,
							   nr_attributes, &made);
		ledger_end(&alloc, status == NV_OK, metadata_object(made), false);
		if (status == NV_OK && range)
			*range = made;
	}
	probe_leave(&umacct_hook_range_create_pool.probe);
	return status;
}

static bool managed_begin(struct allocation *alloc)
{
	return umacct_metadata_begin(alloc, HOOK_UVM,
			      driver_profile(HOOK_UVM)->sizes.managed + ARRAY_BOUND);
}

/* What was taken by the time that the driver failed is gone again. @from: see range_split() */
static void arrays_end(struct range_arrays *arrays, bool success, const void *made,
		       const void *from)
{
	if (arrays->has_array)
		ledger_end(&arrays->array, success, key_of_array(made), false);
	if (arrays->has_shortened)
		ledger_end(&arrays->shortened, true, key_of_shortened(from), false);
}

u32 umacct_replace_range_create_mmap(void *va_space, void *mm, void *vma, void **range)
{
	struct range_arrays arrays = { };
	struct call call = { .arrays = &arrays };
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	void *made = NULL;

	probe_enter(&umacct_hook_range_create_mmap.probe);
	if (managed_begin(&alloc)) {
		call_begin(&call);
		status = umacct_original_range_create_mmap(va_space, mm, vma, &made);
		call_end(&call);
		ledger_end(&alloc, status == NV_OK, metadata_object(made), false);
		arrays_end(&arrays, status == NV_OK, made, NULL);
		if (status == NV_OK && range)
			*range = made;
	}
	probe_leave(&umacct_hook_range_create_mmap.probe);
	return status;
}

/*
 * Splits a managed range: for a policy on a part of it, or because the kernel unmaps or protects a
 * part of the mapping. There a refusal is no error of a call: the driver gives up what
 * it can't split, and a program that touches that gets SIGBUS.
 */
u32 umacct_replace_range_split(void *range, u64 new_end, void **new)
{
	struct range_arrays arrays = { };
	struct call call = { .arrays = &arrays };
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	void *made = NULL;

	probe_enter(&umacct_hook_range_split.probe);
	if (managed_begin(&alloc)) {
		call_begin(&call);
		status = umacct_original_range_split(range, new_end, &made);
		call_end(&call);
		ledger_end(&alloc, status == NV_OK, metadata_object(made), false);
		arrays_end(&arrays, status == NV_OK, made, range);
		if (status == NV_OK && new)
			*new = made;
	}
	probe_leave(&umacct_hook_range_split.probe);
	return status;
}

void umacct_replace_range_destroy(void *range, void *deferred)
{
	struct record *record = NULL, *array = NULL, *shortened = NULL;
	struct call call = { .destroying = true };

	probe_enter(&umacct_hook_range_destroy.probe);
	if (range) {
		record = umacct_ledger_take(metadata_object(range));
		array = umacct_ledger_take(key_of_array(range));
		shortened = umacct_ledger_take(key_of_shortened(range));
	}
	call_begin(&call);
	umacct_original_range_destroy(range, deferred);
	call_end(&call);
	umacct_ledger_settle(record);
	umacct_ledger_settle(array);
	umacct_ledger_settle(shortened);
	probe_leave(&umacct_hook_range_destroy.probe);
}

u32 umacct_replace_block_create(void *range, u64 start, u64 end, void **block)
{
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.block;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	probe_enter(&umacct_hook_block_create.probe);
	if (umacct_metadata_begin(&alloc, HOOK_UVM, bytes)) {
		/* What fails from here on fails for want of memory, unless it is refused deeper down. */
		umacct_call_set_refused(false);
		status = umacct_original_block_create(range, start, end, block);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? metadata_object(*block) : 0, false);
	}
	probe_leave(&umacct_hook_block_create.probe);
	return status;
}

/* The reference count is a block's first member. */
void umacct_replace_block_destroy(void *refcount)
{
	struct record *record;

	probe_enter(&umacct_hook_block_destroy.probe);
	record = umacct_ledger_take(metadata_object(refcount));
	umacct_original_block_destroy(refcount);
	umacct_ledger_settle(record);
	probe_leave(&umacct_hook_block_destroy.probe);
}

/**
 * umacct_metadata_init() - set which sizes and addresses are looked at
 *
 * Context: module initialisation, before any hook is armed.
 */
void umacct_metadata_init(void)
{
	umacct_original_os_alloc_mem_bound = OS_MEM_BOUND;
	umacct_original_kvmalloc_bound = KVMALLOC_BOUND;
	umacct_original_kvmalloc_zero_bound = ARRAY_BOUND;
	/* What the slab allocator has lies below, on both architectures. */
	umacct_original_os_free_mem_bound = VMALLOC_START - 1;
	umacct_original_kvfree_bound = VMALLOC_START - 1;
}

struct hook umacct_hook_os_alloc_mem = {
	.name = "allocate metadata",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_alloc_mem",
		REDIRECT(os_alloc_mem),
	},
};

struct hook umacct_hook_os_free_mem = {
	.name = "free metadata",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_free_mem",
		REDIRECT(os_free_mem),
	},
};

struct hook umacct_hook_device_open = {
	.name = "open device",
	.limits = true,
	.probe = {
		.symbol = "nvidia:nvidia_open",
		REDIRECT(device_open),
	},
};

struct hook umacct_hook_device_close = {
	.name = "close device",
	.limits = true,
	.probe = {
		.symbol = "nvidia:nvidia_close",
		REDIRECT(device_close),
	},
};

struct hook umacct_hook_client_construct = {
	.name = "make client",
	.probe = {
		.symbol = "nvidia:rmclientConstruct_IMPL",
		REDIRECT(client_construct),
	},
};

struct hook umacct_hook_client_destruct = {
	.name = "remove client",
	.probe = {
		.symbol = "nvidia:rmclientDestruct_IMPL",
		REDIRECT(client_destruct),
	},
};

struct hook umacct_hook_event_construct = {
	.name = "make event",
	.layouts = LAYOUT_EVENT,
	.probe = {
		.symbol = "nvidia:eventConstruct_IMPL",
		REDIRECT(event_construct),
	},
};

struct hook umacct_hook_event_destruct = {
	.name = "remove event",
	.layouts = LAYOUT_EVENT,
	.probe = {
		.symbol = "nvidia:eventDestruct_IMPL",
		REDIRECT(event_destruct),
	},
};

struct hook umacct_hook_event_api_construct = {
	.name = "make event",
	.layouts = LAYOUT_EVENT_API,
	.probe = {
		.symbol = "nvidia:eventapiConstruct_IMPL",
		REDIRECT(event_api_construct),
	},
};

struct hook umacct_hook_event_api_destruct = {
	.name = "remove event",
	.layouts = LAYOUT_EVENT_API,
	.probe = {
		.symbol = "nvidia:eventapiDestruct_IMPL",
		REDIRECT(event_api_destruct),
	},
};

struct hook umacct_hook_copy_construct = {
	.name = "duplicate memory object",
	.probe = {
		.symbol = "nvidia:memCopyConstruct_IMPL",
		REDIRECT(copy_construct),
	},
};

/* Of all objects that are memory. */
struct hook umacct_hook_copy_destruct = {
	.name = "remove memory object",
	.probe = {
		.symbol = "nvidia:memDestruct_IMPL",
		REDIRECT(copy_destruct),
	},
};

struct hook umacct_hook_lock_user_pages = {
	.name = "register memory",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_lock_user_pages",
		REDIRECT(lock_user_pages),
	},
};

struct hook umacct_hook_unlock_user_pages = {
	.name = "unregister memory",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_unlock_user_pages",
		REDIRECT(unlock_user_pages),
	},
};

struct hook umacct_hook_look_up_user_io = {
	.name = "look up device memory",
	.limits = true,
	.probe = {
		.symbol = "nvidia:os_lookup_user_io_memory",
		REDIRECT(look_up_user_io),
	},
};

struct hook umacct_hook_kvrealloc = {
	.name = "resize UVM metadata",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:__uvm_kvrealloc",
		REDIRECT(kvrealloc),
	},
};

struct hook umacct_hook_kvfree = {
	.name = "free UVM metadata",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_kvfree",
		REDIRECT(kvfree),
	},
};

struct hook umacct_hook_uvm_device_open = {
	.name = "open UVM device",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_open_entry",
		REDIRECT(uvm_device_open),
	},
};

struct hook umacct_hook_uvm_device_close = {
	.name = "close UVM device",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_release_entry",
		REDIRECT(uvm_device_close),
	},
};

struct hook umacct_hook_range_create_external = {
	.name = "make external range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_create_external",
		REDIRECT(range_create_external),
	},
};

struct hook umacct_hook_range_create_pool = {
	.name = "make UVM pool",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_create_semaphore_pool",
		REDIRECT(range_create_pool),
	},
};

struct hook umacct_hook_range_create_mmap = {
	.name = "make managed range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_create_mmap",
		REDIRECT(range_create_mmap),
	},
};

struct hook umacct_hook_range_split = {
	.name = "split managed range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_split",
		REDIRECT(range_split),
	},
};

struct hook umacct_hook_range_destroy = {
	.name = "remove range",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_range_destroy",
		REDIRECT(range_destroy),
	},
};

struct hook umacct_hook_block_create = {
	.name = "make managed block",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_block_create",
		REDIRECT(block_create),
	},
};

struct hook umacct_hook_block_destroy = {
	.name = "remove managed block",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_block_destroy",
		REDIRECT(block_destroy),
	},
};
