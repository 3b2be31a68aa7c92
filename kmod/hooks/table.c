// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>

#include "hooks/adapter.h"
#include "hooks/alloc.h"
#include "hooks/charge.h"
#include "hooks/managed.h"
#include "hooks/metadata.h"
#include "hooks/table.h"
#include "hooks/va_space.h"
#include "hooks/view.h"

/*
 * Frees before allocations: what is recorded is sure to be seen going. Before them, too,
 * what tells for whom an allocation is made.
 */
struct hook *const umacct_hooks[] = {
	&umacct_hook_init_adapter,
	&umacct_hook_retain_gpu,
	&umacct_hook_free_system_pages,
	&umacct_hook_free_contig_pages,
	&umacct_hook_gfp,
	&umacct_hook_alloc_pages_8,
	&umacct_hook_alloc_pages_9,
	&umacct_hook_alloc_pages_10,
	&umacct_hook_os_free_mem,
	&umacct_hook_os_alloc_mem,
	&umacct_hook_device_close,
	&umacct_hook_device_open,
	&umacct_hook_client_destruct,
	&umacct_hook_client_construct,
	&umacct_hook_event_destruct,
	&umacct_hook_event_construct,
	&umacct_hook_event_api_destruct,
	&umacct_hook_event_api_construct,
	&umacct_hook_copy_destruct,
	&umacct_hook_copy_construct,
	&umacct_hook_unlock_user_pages,
	&umacct_hook_lock_user_pages,
	&umacct_hook_look_up_user_io,
	&umacct_hook_kvfree,
	&umacct_hook_kvrealloc,
	&umacct_hook_kvmalloc,
	&umacct_hook_kvmalloc_zero,
	&umacct_hook_uvm_device_close,
	&umacct_hook_uvm_device_open,
	&umacct_hook_va_space_destroy,
	&umacct_hook_va_space_create,
	&umacct_hook_destroy_group,
	&umacct_hook_create_group,
	&umacct_hook_assign_range,
	&umacct_hook_block_destroy,
	&umacct_hook_block_create,
	&umacct_hook_range_destroy,
	&umacct_hook_range_create_external,
	&umacct_hook_range_create_pool,
	&umacct_hook_range_create_mmap,
	&umacct_hook_range_split,
	&umacct_hook_service_block,
	&umacct_hook_cpu_fault,
	&umacct_hook_uvm_mem_free,
	&umacct_hook_uvm_mem_alloc,
	&umacct_hook_chunk_free,
	&umacct_hook_chunk_alloc_3,
	&umacct_hook_chunk_alloc_4,
	&umacct_hook_si_meminfo,
	&umacct_hook_si_mem_available,
	&umacct_hook_si_meminfo_node,
	&umacct_hook_meminfo_proc_show,
};

const unsigned int umacct_nr_hooks = ARRAY_SIZE(umacct_hooks);
