/* SPDX-License-Identifier: GPL-2.0-only */
/* The ways into and around each function that is redirected, or called. */
#include "probe/redirect.S"

	REDIRECT alloc_pages_8
	REDIRECT alloc_pages_9
	REDIRECT alloc_pages_10
	REDIRECT free_system_pages
	REDIRECT free_contig_pages
	REDIRECT init_adapter
	REDIRECT_STATIC compute_gfp_mask
	ORIGINAL free_pages
	ORIGINAL task_work_add
	ORIGINAL task_work_cancel_match
	REDIRECT chunk_alloc_3
	REDIRECT chunk_alloc_4
	REDIRECT chunk_release
	REDIRECT cpu_fault
	REDIRECT uvm_mem_alloc
	REDIRECT uvm_mem_free
	REDIRECT retain_gpu
	REDIRECT va_space_create
	REDIRECT va_space_destroy
	REDIRECT create_group
	REDIRECT destroy_group
	REDIRECT assign_range
	ORIGINAL first_assigned
	ORIGINAL next_assigned
	REDIRECT service_block
	ORIGINAL block_va_space
	REDIRECT range_create_external
	REDIRECT range_create_pool
	REDIRECT range_create_mmap
	REDIRECT range_split
	REDIRECT range_destroy
	REDIRECT block_create
	REDIRECT block_destroy
	REDIRECT_ABOVE kvmalloc, 0
	REDIRECT_ABOVE kvmalloc_zero, 0
	REDIRECT kvrealloc
	REDIRECT_ABOVE kvfree, 0
	REDIRECT_ABOVE os_alloc_mem, 1
	REDIRECT_ABOVE os_free_mem, 0
	REDIRECT client_construct
	REDIRECT client_destruct
	REDIRECT event_construct
	REDIRECT event_destruct
	REDIRECT event_api_construct
	REDIRECT event_api_destruct
	REDIRECT copy_construct
	REDIRECT copy_destruct
	REDIRECT lock_user_pages
	REDIRECT unlock_user_pages
	REDIRECT look_up_user_io
	REDIRECT device_open
	REDIRECT device_close
	REDIRECT uvm_device_open
	REDIRECT uvm_device_close
	REDIRECT si_meminfo
	REDIRECT si_meminfo_node
	REDIRECT si_mem_available
	REDIRECT meminfo_proc_show

#ifdef CONFIG_X86_64
	.section .note.GNU-stack, "", @progbits
#endif
