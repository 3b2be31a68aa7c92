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
struct hook *const hooks[] = {
	&hook_init_adapter,
	&hook_retain_gpu,
	&hook_free_system_pages,
	&hook_free_contig_pages,
	&hook_gfp,
	&hook_alloc_pages_8,
	&hook_alloc_pages_9,
	&hook_alloc_pages_10,
	&hook_os_free_mem,
	&hook_os_alloc_mem,
	&hook_client_destruct,
	&hook_client_construct,
	&hook_kvfree,
	&hook_kvrealloc,
	&hook_kvmalloc,
	&hook_kvmalloc_zero,
	&hook_va_space_destroy,
	&hook_va_space_create,
	&hook_block_destroy,
	&hook_block_create,
	&hook_range_destroy,
	&hook_range_create_external,
	&hook_range_create_mmap,
	&hook_service_block,
	&hook_cpu_fault,
	&hook_uvm_mem_free,
	&hook_uvm_mem_alloc,
	&hook_chunk_free,
	&hook_chunk_alloc_3,
	&hook_chunk_alloc_4,
	&hook_si_meminfo,
	&hook_si_mem_available,
	&hook_si_meminfo_node,
	&hook_meminfo_proc_show,
};

const unsigned int nr_hooks = ARRAY_SIZE(hooks);
