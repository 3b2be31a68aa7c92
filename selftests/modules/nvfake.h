/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NVFAKE_H
#define NVFAKE_H

#include <linux/nodemask.h>
#include <linux/types.h>

#define ORDERS	11

struct pool;

/* The driver's functions that other code calls, or looks for. */
extern struct pool *sysmem_page_pools[MAX_NUMNODES][ORDERS];
u32 nv_alloc_pages(void *nv, u32 count, u64 page_size, u8 contiguous, u32 cache, u8 zeroed,
		   u8 unencrypted, s32 node, u64 *ptes, void **priv);
void nv_free_system_pages(void *at);
void nv_free_contig_pages(void *at);
int rm_init_adapter(void);
int nv_shutdown_adapter(void);
int nv_set_system_power_state(void);
int rm_power_management(void);
int rm_transition_dynamic_power(void);
int nvidia_modeset_suspend(void);
int nvidia_modeset_resume(void);

#endif /* NVFAKE_H */
