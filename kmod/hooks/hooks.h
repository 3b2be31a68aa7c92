/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every function that is hooked or called, declared once. What a declaration makes is defined by the
 * file that includes this: hook.h declares the hook, its thunks and its replacement, table.c defines
 * the hook and its place in the table, redirects.S the thunks. HOOK() must be defined, the others have
 * a default; all are undefined again at the end.
 *
 * HOOK(name, module, function, description, return type, parameters, members of struct hook)
 *	umacct_replace_<name>() runs in place of the function, whose code is
 *	umacct_original_<name>(). The description is the status's.
 * HOOK_STATIC(name, ...)
 *	The same for a static function.
 * WORK_FOR_DRIVER(name, module, function, description)
 *	HOOK() for the functions that do the driver's own work. They have up to five arguments, in
 *	registers, and from series to series not the same number: all five are passed on, as is the
 *	register of the result.
 * ALLOC_PAGES(n, size, parameters, arguments)
 *	HOOK() for nv_alloc_pages() in LAYOUT_ALLOC_<n>, in the kernel's types for the driver's
 *	NV_STATUS, NvU32, NvU64, NvBool and NvS32. @size: of a page, where the layout has none.
 * CHUNK_ALLOC(n, parameters, arguments)
 *	HOOK() for uvm_cpu_chunk_alloc() in LAYOUT_CHUNK_<n>.
 * UVM_LIMITS
 *	Members for a hook of nvidia-uvm's without which some memory is outside of limits.
 * CALLED(name, return type, parameters)
 *	A function that a hook lists with CALLS() and calls by umacct_original_<name>().
 *
 * The order is that of arming: frees before allocations, as what is recorded is sure to be seen
 * going, and before both the calls that an allocation is attributed by.
 */

#ifndef HOOK_STATIC
#define HOOK_STATIC(...)		HOOK(__VA_ARGS__)
#endif
#ifndef WORK_FOR_DRIVER
#define WORK_FOR_DRIVER(name, module, function, description)			\
	HOOK(name, module, function, description, unsigned long,		\
	     (unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e))
#endif
#ifndef ALLOC_PAGES
#define ALLOC_PAGES(n, size, params, args)					\
	HOOK(alloc_pages_##n, NVIDIA, nv_alloc_pages, "allocate", u32, params,	\
	     .required = true, .layouts = LAYOUT_ALLOC_##n)
#endif
#ifndef CHUNK_ALLOC
#define CHUNK_ALLOC(n, params, args)						\
	HOOK(chunk_alloc_##n, UVM, uvm_cpu_chunk_alloc, "allocate managed", u32, params, \
	     .required = true, .layouts = LAYOUT_CHUNK_##n)
#endif
#ifndef CALLED
#define CALLED(...)
#endif

WORK_FOR_DRIVER(init_adapter, NVIDIA, rm_init_adapter, "initialise adapter")
WORK_FOR_DRIVER(shutdown_adapter, NVIDIA, nv_shutdown_adapter, "shut down adapter")
/* The machine's suspend and resume: displays, managed memory, each GPU. */
WORK_FOR_DRIVER(system_power, NVIDIA, nv_set_system_power_state, "suspend and resume")
/* The same of one GPU, by the kernel. */
WORK_FOR_DRIVER(gpu_power, NVIDIA, rm_power_management, "suspend and resume GPU")
WORK_FOR_DRIVER(modeset_suspend, NVIDIA, nvidia_modeset_suspend, "suspend display")
WORK_FOR_DRIVER(modeset_resume, NVIDIA, nvidia_modeset_resume, "resume display")
/* An unused GPU is put to sleep, and woken by its next user. */
WORK_FOR_DRIVER(runtime_power, NVIDIA, rm_transition_dynamic_power, "wake GPU")
/* The first to register a GPU has nvidia-uvm set it up. */
WORK_FOR_DRIVER(retain_gpu, UVM, uvm_gpu_retain_by_uuid, "set up GPU for managed memory")
HOOK(free_system_pages, NVIDIA, nv_free_system_pages, "free", void, (void *at), .required = true)
HOOK(free_contig_pages, NVIDIA, nv_free_contig_pages, "free contiguous",
	void, (void *at), .required = true)
/* A static function, of which there may be no copy to hook. */
CALLED(free_pages, u32, (void *nv, u32 count, u8 contiguous, u32 cache, void *priv))
HOOK_STATIC(compute_gfp_mask, NVIDIA, nv_compute_gfp_mask, "charge",
	unsigned int, (void *nv, void *at), .wanted = umacct_charge_wanted,
	.quiesce = umacct_charge_quiesce, .calls = { CALLS("nvidia:nv_free_pages", free_pages) })
ALLOC_PAGES(8, PAGE_SIZE,
	(void *nv, u32 count, u8 contiguous, u32 cache, u8 zeroed, u8 unencrypted,
	u64 *ptes, void **priv),
	(nv, count, contiguous, cache, zeroed, unencrypted, ptes, priv))
ALLOC_PAGES(9, PAGE_SIZE,
	(void *nv, u32 count, u8 contiguous, u32 cache, u8 zeroed, u8 unencrypted,
	s32 node, u64 *ptes, void **priv),
	(nv, count, contiguous, cache, zeroed, unencrypted, node, ptes, priv))
ALLOC_PAGES(10, page_size,
	(void *nv, u32 count, u64 page_size, u8 contiguous, u32 cache, u8 zeroed,
	u8 unencrypted, s32 node, u64 *ptes, void **priv),
	(nv, count, page_size, contiguous, cache, zeroed, unencrypted, node, ptes, priv))
HOOK(os_free_mem, NVIDIA, os_free_mem, "free metadata", void, (void *address), .limits = true)
HOOK(os_free_mutex, NVIDIA, os_free_mutex, "free mutex", void, (void *lock), .limits = true)
HOOK(os_free_rwlock, NVIDIA, os_free_rwlock, "free rwlock", void, (void *lock), .limits = true)
HOOK(os_free_semaphore, NVIDIA, os_free_semaphore, "free semaphore",
	void, (void *lock), .limits = true)
HOOK(os_free_spinlock, NVIDIA, os_free_spinlock, "free spinlock",
	void, (void *lock), .limits = true)
HOOK(os_alloc_mem, NVIDIA, os_alloc_mem, "allocate metadata",
	u32, (void **address, u64 size), .limits = true)
HOOK(device_close, NVIDIA, nvidia_close, "close device",
	int, (struct inode *inode, struct file *file), .limits = true)
HOOK(device_open, NVIDIA, nvidia_open, "open device",
	int, (struct inode *inode, struct file *file), .limits = true)
/* Present only in driver builds that keep their functions' names. */
HOOK(free_tree, NVIDIA, serverFreeResourceTree, "free objects", u32, (void *server, void *params))
/* The series up to 550 have no @flags. */
HOOK(unlock_user_pages, NVIDIA, os_unlock_user_pages, "unregister memory",
	u32, (u64 pages, void *array, u32 flags), .limits = true)
HOOK(lock_user_pages, NVIDIA, os_lock_user_pages, "register memory",
	u32, (void *address, u64 pages, void **array, u32 flags), .limits = true)
HOOK(kvfree, UVM, uvm_kvfree, "free UVM metadata", void, (void *at), UVM_LIMITS)
HOOK(kvrealloc, UVM, __uvm_kvrealloc, "resize UVM metadata",
	void *, (void *at, size_t size, const char *file, int line, const char *function),
	UVM_LIMITS)
HOOK(kvmalloc, UVM, __uvm_kvmalloc, "allocate UVM metadata",
	void *, (size_t size, const char *file, int line, const char *function), UVM_LIMITS)
HOOK(kvmalloc_zero, UVM, __uvm_kvmalloc_zero, "allocate UVM metadata",
	void *, (size_t size, const char *file, int line, const char *function), UVM_LIMITS)
HOOK(uvm_device_close, UVM, uvm_release_entry, "close UVM device",
	int, (struct inode *inode, struct file *file), UVM_LIMITS)
HOOK(uvm_device_open, UVM, uvm_open_entry, "open UVM device",
	int, (struct inode *inode, struct file *file), UVM_LIMITS)
HOOK(tools_device_close, UVM, uvm_tools_release_entry, "close UVM tools",
	int, (struct inode *inode, struct file *file), UVM_LIMITS)
HOOK(tools_device_open, UVM, uvm_tools_open_entry, "open UVM tools",
	int, (struct inode *inode, struct file *file), UVM_LIMITS)
HOOK(va_space_destroy, UVM, uvm_va_space_destroy, "remove VA space",
	void, (void *va_space), UVM_LIMITS)
HOOK(va_space_create, UVM, uvm_va_space_create, "make VA space",
	u32, (void *mapping, void **va_space, u64 flags), UVM_LIMITS)
HOOK(destroy_group, UVM, uvm_api_destroy_range_group, "remove range group",
	u32, (void *params, struct file *file), UVM_LIMITS)
HOOK(create_group, UVM, uvm_api_create_range_group, "make range group",
	u32, (void *params, struct file *file), UVM_LIMITS)
CALLED(first_assigned, void *, (void *va_space, u64 start, u64 end))
CALLED(next_assigned, void *, (void *va_space, void *range, u64 end))
HOOK(assign_range, UVM, uvm_range_group_assign_range, "assign to range group",
	u32, (void *va_space, void *group, u64 start, u64 end), UVM_LIMITS,
	.calls = { CALLS("nvidia_uvm:uvm_range_group_range_iter_first", first_assigned),
		   CALLS("nvidia_uvm:uvm_range_group_range_iter_next", next_assigned) })
HOOK(block_destroy, UVM, uvm_va_block_destroy, "remove managed block",
	void, (void *refcount), UVM_LIMITS)
HOOK(block_create, UVM, uvm_va_block_create, "make managed block",
	u32, (void *range, u64 start, u64 end, void **block), UVM_LIMITS)
HOOK(range_destroy, UVM, uvm_va_range_destroy, "remove range",
	void, (void *range, void *deferred), UVM_LIMITS)
HOOK(range_create_external, UVM, uvm_va_range_create_external, "make external range",
	u32, (void *va_space, void *mm, u64 start, u64 length, void **range), UVM_LIMITS)
HOOK(range_create_pool, UVM, uvm_va_range_create_semaphore_pool, "make UVM pool",
	u32, (void *va_space, void *mm, u64 start, u64 length, const void *attributes,
	u32 nr_attributes, void **range), UVM_LIMITS)
HOOK(range_create_mmap, UVM, uvm_va_range_create_mmap, "make managed range",
	u32, (void *va_space, void *mm, void *vma, void **range), UVM_LIMITS)
HOOK(range_split, UVM, uvm_va_range_split, "split managed range",
	u32, (void *range, u64 new_end, void **new), UVM_LIMITS)
CALLED(block_va_space, void *, (void *block))
HOOK(service_block, UVM, uvm_va_block_service_locked, "serve fault",
	u32, (unsigned long processor, void *block, void *retry, void *context), UVM_LIMITS,
	.calls = { CALLS("nvidia_uvm:uvm_va_block_get_va_space", block_va_space) })
/* 530 has a fifth argument. */
HOOK(find_create_block, UVM, uvm_va_block_find_create_in_range, "refuse fault of GPU",
	u32, (void *va_space, unsigned long b, unsigned long c, unsigned long d, unsigned long e),
	UVM_LIMITS)
/* (va_space, vma, vmf), from 570 on (va_space, vmf) */
HOOK(cpu_fault, UVM, uvm_va_space_cpu_fault_managed, "fault on managed",
	vm_fault_t, (unsigned long a, unsigned long b, unsigned long c), UVM_LIMITS)
HOOK(uvm_mem_free, UVM, uvm_mem_free, "free UVM pool", void, (void *mem), UVM_LIMITS)
HOOK(uvm_mem_alloc, UVM, uvm_mem_alloc, "allocate UVM pool",
	u32, (const struct uvm_mem_params *params, void **mem), UVM_LIMITS)
HOOK(chunk_release, UVM, cpu_chunk_release, "free managed",
	void, (void *refcount), .required = true, .layouts = LAYOUT_UVM)
CHUNK_ALLOC(3, (u32 size, u32 flags, void **chunk), (size, flags, chunk))
CHUNK_ALLOC(4, (u32 size, u32 flags, int node, void **chunk), (size, flags, node, chunk))
HOOK(node_meminfo, KERNEL, node_read_meminfo, "view in answers",
	unsigned long, (unsigned long a, unsigned long b, unsigned long c),
	.wanted = umacct_view_wanted)
HOOK(si_meminfo, KERNEL, si_meminfo, "view",
	void, (struct sysinfo *val), .wanted = umacct_view_wanted)
HOOK(si_mem_available, KERNEL, si_mem_available, "view of what is available",
	long, (void), .wanted = umacct_view_wanted)
HOOK(si_meminfo_node, KERNEL, si_meminfo_node, "view of a node",
	void, (struct sysinfo *val, int nid), .wanted = umacct_view_wanted)
HOOK(meminfo_proc_show, KERNEL, meminfo_proc_show, "view of caches",
	int, (struct seq_file *seq, void *unused), .wanted = umacct_view_wanted)
CALLED(task_work_add, int,
	(struct task_struct *task, struct callback_head *work, enum task_work_notify_mode notify))
CALLED(task_work_cancel_match, struct callback_head *,
	(struct task_struct *task, bool (*match)(struct callback_head *work, void *data), void *data))

#undef HOOK
#undef HOOK_STATIC
#undef WORK_FOR_DRIVER
#undef ALLOC_PAGES
#undef CHUNK_ALLOC
#undef CALLED
