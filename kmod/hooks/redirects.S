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
	REDIRECT ioctl
	REDIRECT compat_ioctl
	REDIRECT chunk_alloc_3
	REDIRECT chunk_alloc_4
	REDIRECT si_meminfo
	REDIRECT si_meminfo_node
	REDIRECT si_mem_available
	REDIRECT meminfo_proc_show

#ifdef CONFIG_X86_64
	.section .note.GNU-stack, "", @progbits
#endif
