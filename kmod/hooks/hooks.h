/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_HOOKS_H
#define UMACCT_HOOKS_H

#include "hooks/driver.h"

/* hooks.c: nvidia.ko */
extern struct hook hook_init_adapter;
extern struct hook hook_free_system_pages;
extern struct hook hook_free_contig_pages;
extern struct hook hook_gfp;
extern struct hook hook_alloc_pages_8;
extern struct hook hook_alloc_pages_9;
extern struct hook hook_alloc_pages_10;

/* throttle.c: nvidia.ko */
extern struct hook hook_ioctl;
extern struct hook hook_frontend_ioctl;

/* view.c: the kernel */
extern struct hook hook_si_meminfo;
extern struct hook hook_si_mem_available;
extern struct hook hook_si_meminfo_node;

/* managed.c: nvidia-uvm.ko */
extern struct hook hook_chunk_free;
extern struct hook hook_chunk_alloc_3;
extern struct hook hook_chunk_alloc_4;

#endif /* UMACCT_HOOKS_H */
