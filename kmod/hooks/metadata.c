// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata: what the drivers keep because of a client, beside the pages that it asked for.
 *
 * All of nvidia.ko's heap, whatever its purpose, comes from one function, and counts for the client
 * that the driver works for; see ledger/heap.c. What it and nvidia-uvm take from the kernel
 * themselves is an object: its constructor and destructor are followed, and its size is a constant
 * of the driver's series.
 *
 * It counts for the client, under limits and for the reserve, and where charging is on, the kernel's
 * memory controller is charged for it: in lots, as neither driver can be made to ask for that.
 */
#include <linux/fs.h>
#include <linux/kasan.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "hooks/adapter.h"
#include "hooks/call.h"
#include "hooks/metadata.h"
#include "hooks/nv_status.h"
#include "hooks/way_out.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"

/* The drivers take whole pages from vmalloc() above these, and put a head of 16 bytes in front. */
#define OS_MEM_BOUND	SZ_128K
#define KVMALLOC_BOUND	(4 * PAGE_SIZE)
#define HEADER_BYTES	16

/* The kernel would kill for it, even if nothing is limited. */
static bool metadata_is_impossible(u64 bytes)
{
	return bytes >> PAGE_SHIFT > totalram_pages() / LIMIT_METADATA_PART ||
	       (bytes >= SZ_1M && bytes > available_now());
}

/* A call that frees must not fail for a limit, and keeps nothing. */
static bool destroys(void)
{
	const struct call *call = call_current();

	return unlikely(call) && call->destroying;
}

/*
 * A driver is about to take memory for metadata. Returns false if a limit forbids it; otherwise
 * ledger_end() must follow. May sleep.
 */
bool umacct_metadata_begin(struct allocation *alloc, enum hook_module module, u64 bytes)
{
	*alloc = (struct allocation) {
		.bytes = bytes,
		.metadata = bytes,
		.kind = loads_uvm() || destroys() ? ALLOCATION_DRIVER :
						    kind_for_caller(module, ALLOCATION_METADATA),
		.uvm = module == HOOK_UVM,
	};
	if (unlikely(alloc->kind != ALLOCATION_DRIVER && metadata_is_impossible(bytes)))
		umacct_ledger_refuse_impossible(alloc);
	else if (unlikely(alloc->kind == ALLOCATION_DRIVER) ? ledger_begin(alloc) :
							      umacct_ledger_begin_metadata(alloc))
		return true;
	umacct_way_out_short(&alloc->shortage);
	/* A fault may need it: see umacct_replace_cpu_fault(). */
	if (module == HOOK_UVM)
		umacct_call_set_refused(true);
	return false;
}

static u64 vmalloc_bytes(u64 size)
{
	return PAGE_ALIGN(size + HEADER_BYTES);
}

/*
 * Does the current task ask a driver's heap for something of its own? Not for what frees: that must not
 * fail for a limit, and keeps nothing.
 */
static __always_inline bool works_for_client(enum hook_module module)
{
	const struct call *call;

	if (unlikely(!in_task() || (current->flags & PF_EXITING) || !works_for_a_process() ||
		     loads_uvm() || !READ_ONCE(driver_profile(module)->live)))
		return false;
	call = call_current();
	return likely(!call) || !(call->for_driver || call->destroying);
}

/*
 * The slab allocator's blocks for up to 256 bytes, in steps of 8: which there are depends on the
 * processor and on the kernel's configuration. Above these, each is a power of two.
 */
#define SMALL_MOST	256
static u16 small_blocks[SMALL_MOST / 8 + 1] __ro_after_init;

/* Asks the slab allocator for its sizes. */
void umacct_metadata_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(small_blocks); i++)
		small_blocks[i] = kmalloc_size_roundup(max_t(size_t, i, 1) * 8);
}

/* The size of the slab allocator's block for that many bytes. */
static __always_inline u64 slab_bytes(u64 size)
{
	return size <= SMALL_MOST ? small_blocks[DIV_ROUND_UP(size, 8)] : roundup_pow_of_two(size);
}

/* The driver allocates little from an interrupt or under a spinlock. */
static bool may_sleep(void)
{
	return !irqs_disabled() && !preempt_count();
}

static noinline int heap_take_slowly(u64 bytes, bool uvm)
{
	struct shortage why = { };
	int owner = umacct_heap_take(bytes, uvm, may_sleep(), &why);

	if (owner < 0 && may_sleep())
		umacct_way_out_short(&why);
	return owner;
}

/*
 * A driver's heap is about to be asked for memory. Return: whose it is, 0 if that isn't known, or less
 * than 0 if a limit, the reserve or a lack of memory refuses it.
 */
static __always_inline int heap_take(u64 bytes, bool uvm)
{
	const int owner = heap_take_quickly(bytes, uvm);

	return likely(owner) ? owner : heap_take_slowly(bytes, uvm);
}

/*
 * Bytes of a list of GPUs, which a program can hand over to an open file of nvidia.ko's control
 * device. The call can't be followed: a program can make it last for ever.
 */
#define CONTROL_MINOR	255
#define LIST_BYTES	SZ_16K

static u64 list_bytes(enum hook_module module, const struct inode *inode)
{
	return module == HOOK_NVIDIA && iminor(inode) == CONTROL_MINOR ? LIST_BYTES : 0;
}

/* An open file of a device of the driver's: the kernel charges its own part itself. */
#define DEVICE(which, hooked, size)							\
	int umacct_replace_##which##_open(struct inode *inode, struct file *file)	\
	{									\
		INSIDE(which##_open);						\
		const u64 bytes = driver_profile(hooked)->sizes.size +		\
				  list_bytes(hooked, inode);			\
		struct allocation alloc;					\
		int err;							\
										\
		if (!umacct_metadata_begin(&alloc, hooked, bytes))		\
			return -ENOMEM;						\
		err = umacct_original_##which##_open(inode, file);		\
		ledger_end(&alloc, !err, metadata_object(file), false);		\
		return err;							\
	}									\
										\
	int umacct_replace_##which##_close(struct inode *inode, struct file *file)	\
	{									\
		INSIDE(which##_close);					\
		struct call call = { .destroying = true };			\
		struct record *record;						\
		int err;							\
										\
		record = umacct_record_take(metadata_object(file));		\
		call_begin(&call);						\
		err = umacct_original_##which##_close(inode, file);		\
		call_end(&call);						\
		umacct_record_settle(record);					\
		return err;							\
	}

DEVICE(device, HOOK_NVIDIA, file)
DEVICE(uvm_device, HOOK_UVM, uvm_file)
DEVICE(tools_device, HOOK_UVM, tools_file)

/* --- nvidia.ko ------------------------------------------------------------ */

/*
 * The driver puts a word in front of what it hands out, with the size and, in the lowest bit, which of
 * the kernel's allocators it has it from; when it frees, it looks at that bit alone. In the upper bits
 * is room for whose it is.
 */
#define OS_MEM_HEADER		sizeof(u64)
#define OS_MEM_SIZE		(BIT(HEAP_MARK_SHIFT) - 1)

static u64 os_mem_padded(u64 size)
{
	return ALIGN(size + OS_MEM_HEADER, OS_MEM_HEADER);
}

static u64 *os_mem_header(void *address)
{
	return address - OS_MEM_HEADER;
}

static __always_inline u32 alloc_small(void **address, u64 size)
{
	const u64 bytes = slab_bytes(os_mem_padded(size));
	const int owner = heap_take(bytes, false);
	u32 status;

	if (unlikely(owner < 0)) {
		if (address)
			*address = NULL;
		return NV_ERR_NO_MEMORY;
	}
	status = umacct_original_os_alloc_mem(address, size);
	if (unlikely(!owner))
		return status;
	if (likely(status == NV_OK))
		*os_mem_header(*address) |= heap_mark(owner);
	else
		heap_give(owner, bytes);
	return status;
}

static noinline u32 alloc_large(void **address, u64 size)
{
	struct allocation alloc;
	u32 status;

	if (!umacct_metadata_begin(&alloc, HOOK_NVIDIA, vmalloc_bytes(size))) {
		if (address)
			*address = NULL;
		return NV_ERR_NO_MEMORY;
	}
	status = umacct_original_os_alloc_mem(address, size);
	ledger_end(&alloc, status == NV_OK, status == NV_OK ? (unsigned long)*address : 0, false);
	return status;
}

u32 umacct_replace_os_alloc_mem(void **address, u64 size)
{
	INSIDE(os_alloc_mem);

	if (likely(size <= OS_MEM_BOUND - OS_MEM_HEADER) && works_for_client(HOOK_NVIDIA))
		return alloc_small(address, size);
	if (size > OS_MEM_BOUND - OS_MEM_HEADER && size <= U64_MAX - SZ_64K && may_sleep())
		return alloc_large(address, size);
	return umacct_original_os_alloc_mem(address, size);
}

/* Removes the mark: freed memory has none. Return: the owner that it named, or 0. */
static __always_inline u32 os_mem_unmark(void *address, u64 *bytes)
{
	u64 *header = os_mem_header(address);
	u32 owner = heap_owner(*header);

	if (unlikely(!owner))
		return 0;
	*header &= OS_MEM_SIZE;
	*bytes = slab_bytes(*header & ~1ULL);
	return owner;
}

static __always_inline void os_mem_free(void *address, void (*free)(void *address))
{
	struct record *record = NULL;
	u32 owner = 0;
	u64 bytes;

	if (likely(address))
		owner = os_mem_unmark(address, &bytes);
	if (likely(owner)) {
		free(address);
		heap_give(owner, bytes);
		return;
	}
	if (is_vmalloc_addr(address))
		record = umacct_record_take((unsigned long)address);
	free(address);
	umacct_record_settle(record);
}

/* The compiler has made os_free_mem() a part of the others, as they are in the same file. */
#define FREE(which)							\
	void umacct_replace_##which(void *address)			\
	{								\
		INSIDE(which);						\
									\
		os_mem_free(address, umacct_original_##which);		\
	}

FREE(os_free_mem)
FREE(os_free_mutex)
FREE(os_free_rwlock)
FREE(os_free_semaphore)
FREE(os_free_spinlock)

/* The resource manager frees an object and all below it, by a call for that or with a file. */
u32 umacct_replace_free_tree(void *server, void *params)
{
	INSIDE(free_tree);
	struct call call = { .destroying = true };
	u32 status;

	call_begin(&call);
	status = umacct_original_free_tree(server, params);
	call_end(&call);
	return status;
}

/*
 * A program's own memory that it registers, which is pinned meanwhile. The driver's array with an entry
 * for each page is of its heap, and counts there.
 */
u32 umacct_replace_lock_user_pages(void *address, u64 pages, void **array, u32 flags)
{
	INSIDE(lock_user_pages);
	struct allocation alloc;
	u32 status;

	if (!umacct_metadata_begin(&alloc, HOOK_NVIDIA, 0))
		return NV_ERR_NO_MEMORY;
	alloc.pinned = pages << PAGE_SHIFT;
	status = umacct_original_lock_user_pages(address, pages, array, flags);
	metadata_end(&alloc, status, *array);
	return status;
}

u32 umacct_replace_unlock_user_pages(u64 pages, void *array, u32 flags)
{
	INSIDE(unlock_user_pages);
	struct record *record = umacct_record_take(metadata_object(array));
	u32 status;

	status = umacct_original_unlock_user_pages(pages, array, flags);
	umacct_record_settle(record);
	return status;
}

/* --- nvidia-uvm.ko -------------------------------------------------------- */

/*
 * nvidia-uvm's heap is the slab allocator's up to a size, and vmalloc()'s above. Of the former
 * the mark is at the end of the block, for which the driver is asked for as much more; the latter are
 * found by their address.
 */
#define UVM_MEM_MARK	sizeof(u64)

static u64 *uvm_mem_mark(void *at, u64 bytes)
{
	return at + bytes - UVM_MEM_MARK;
}

/* Return: whose it was, or 0. */
static __always_inline u32 uvm_mem_unmark(void *at, u64 *bytes)
{
	u64 *mark;
	u32 owner;

	*bytes = ksize(at);
	mark = uvm_mem_mark(at, *bytes);
	owner = heap_owner(*mark);
	if (likely(owner))
		*mark = 0;
	return owner;
}

/**
 * struct uvm_mem - a block of nvidia-uvm's heap that is being asked for
 * @size: how much to ask the driver for
 * @owner: whose heap it is of, for one of the slab allocator's, or 0
 * @large: it is one of vmalloc()'s, and counted
 */
struct uvm_mem {
	size_t size;
	int owner;
	bool large;
};

/* @alloc: for one of vmalloc()'s. Return: false if a limit forbids it. */
static __always_inline bool uvm_mem_begin(struct uvm_mem *mem, size_t size, struct allocation *alloc)
{
	mem->size = size;
	mem->owner = 0;
	mem->large = false;
	if (unlikely(size > SIZE_MAX - SZ_64K) || !works_for_client(HOOK_UVM))
		return true;
	if (likely(size <= KVMALLOC_BOUND - UVM_MEM_MARK)) {
		mem->size = slab_bytes(size + UVM_MEM_MARK);
		mem->owner = heap_take(mem->size, true);
	} else {
		/* No room is left for a mark in the slab allocator's largest block. */
		mem->size = max_t(size_t, size, KVMALLOC_BOUND + 1);
		mem->large = umacct_metadata_begin(alloc, HOOK_UVM, vmalloc_bytes(mem->size));
		mem->owner = mem->large ? 0 : -ENOMEM;
	}
	if (likely(mem->owner >= 0))
		return true;
	umacct_call_set_refused(true);
	return false;
}

static __always_inline void uvm_mem_end(const struct uvm_mem *mem, struct allocation *alloc, void *at)
{
	if (unlikely(mem->large))
		ledger_end(alloc, at, (unsigned long)at, false);
	else if (likely(mem->owner && at))
		*uvm_mem_mark(at, mem->size) = heap_mark(mem->owner);
	else if (mem->owner)
		heap_give(mem->owner, mem->size);
}

#define KVMALLOC(which)									\
	void *umacct_replace_##which(size_t size, const char *file, int line,		\
				     const char *function)				\
	{										\
		INSIDE(which);							\
		struct allocation alloc __uninitialized;				\
		struct uvm_mem mem __uninitialized;					\
		void *at;								\
											\
		if (!uvm_mem_begin(&mem, size, &alloc))					\
			return NULL;							\
		at = umacct_original_##which(mem.size, file, line, function);		\
		uvm_mem_end(&mem, &alloc, at);						\
		return at;								\
	}

KVMALLOC(kvmalloc)
KVMALLOC(kvmalloc_zero)

/*
 * Resizes an existing block; nothing but the driver's tests has a new one made by this. One of the slab
 * allocator's that is to become smaller stays where and as large as it is, as krealloc() does it, and
 * counts so.
 */
void *umacct_replace_kvrealloc(void *at, size_t size, const char *file, int line,
			       const char *function)
{
	INSIDE(kvrealloc);
	struct record *record = NULL;
	struct allocation alloc;
	struct uvm_mem mem = { };
	u32 owner = 0;
	u64 bytes = 0;
	void *new;

	if (ZERO_OR_NULL_PTR(at))
		return umacct_original_kvrealloc(at, size, file, line, function);
	if (size && !is_vmalloc_addr(at) && size <= ksize(at) - UVM_MEM_MARK)
		return at;
	if (size && !uvm_mem_begin(&mem, size, &alloc))
		return NULL;
	if (is_vmalloc_addr(at))
		record = umacct_record_take((unsigned long)at);
	else
		owner = uvm_mem_unmark(at, &bytes);
	new = umacct_original_kvrealloc(at, mem.size, file, line, function);
	/* A size of 0 frees the block. */
	if (new) {
		umacct_record_settle(record);
		if (owner)
			heap_give(owner, bytes);
	} else {
		umacct_record_put_back(record);
		if (owner)
			*uvm_mem_mark(at, bytes) = heap_mark(owner);
	}
	uvm_mem_end(&mem, &alloc, new);
	return new;
}

void umacct_replace_kvfree(void *at)
{
	INSIDE(kvfree);
	struct record *record;
	u32 owner = 0;
	u64 bytes;

	/* vmalloc()'s blocks lie above the slab allocator's. */
	if (unlikely((unsigned long)kasan_reset_tag(at) >= VMALLOC_START) && is_vmalloc_addr(at)) {
		record = umacct_record_take((unsigned long)at);
		umacct_original_kvfree(at);
		umacct_record_settle(record);
		return;
	}
	if (likely(!ZERO_OR_NULL_PTR(at)))
		owner = uvm_mem_unmark(at, &bytes);
	umacct_original_kvfree(at);
	if (likely(owner))
		heap_give(owner, bytes);
}

/* An object of nvidia-uvm's, of a constant size, for the call's client. @out: its address. */
#define MAKE(which, of_size, params, args, out)						\
	u32 umacct_replace_##which params						\
	{										\
		INSIDE(which);							\
		const u64 bytes = driver_profile(HOOK_UVM)->sizes.of_size;		\
		struct allocation alloc;						\
		void *made = NULL;							\
		u32 status;								\
											\
		if (!umacct_metadata_begin(&alloc, HOOK_UVM, bytes))			\
			return NV_ERR_NO_MEMORY;					\
		/* A failure from here on is a lack of memory, unless a deeper hook refuses. */ \
		umacct_call_set_refused(false);						\
		status = umacct_original_##which args;					\
		metadata_end(&alloc, status, made);					\
		if (status == NV_OK && (out))						\
			*(out) = made;							\
		return status;								\
	}

MAKE(range_create_external, external,
	(void *va_space, void *mm, u64 start, u64 length, void **range),
	(va_space, mm, start, length, &made), range)

MAKE(range_create_pool, pool,
	(void *va_space, void *mm, u64 start, u64 length, const void *attributes, u32 nr_attributes,
	void **range),
	(va_space, mm, start, length, attributes, nr_attributes, &made), range)

MAKE(range_create_mmap, managed, (void *va_space, void *mm, void *vma, void **range),
	(va_space, mm, vma, &made), range)

/*
 * Splits a managed range: for a policy on a part of it, or because the kernel unmaps or protects a
 * part of the mapping. There a refusal is no error of a call: the driver gives up what
 * it can't split, and a program that touches that gets SIGBUS.
 */
MAKE(range_split, managed, (void *range, u64 new_end, void **new), (range, new_end, &made), new)

void umacct_replace_range_destroy(void *range, void *deferred)
{
	INSIDE(range_destroy);
	struct call call = { .destroying = true };
	struct record *record = NULL;

	if (range)
		record = umacct_record_take(metadata_object(range));
	call_begin(&call);
	umacct_original_range_destroy(range, deferred);
	call_end(&call);
	umacct_record_settle(record);
}

MAKE(block_create, block, (void *range, u64 start, u64 end, void **block),
	(range, start, end, &made), block)

/* The reference count is a block's first member. */
void umacct_replace_block_destroy(void *refcount)
{
	INSIDE(block_destroy);
	struct record *record = umacct_record_take(metadata_object(refcount));

	umacct_original_block_destroy(refcount);
	umacct_record_settle(record);
}
