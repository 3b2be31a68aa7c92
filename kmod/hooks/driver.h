/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_DRIVER_H
#define UMACCT_DRIVER_H

#include <linux/types.h>

#include <umacct.h>

#include "probe/probe.h"

/* Arguments of nv_alloc_pages(). */
enum alloc_layout {
	ALLOC_8,		/* nv, count, contiguous, cache, zeroed, unencrypted, ptes, priv */
	ALLOC_9,		/* ALLOC_8 with node before ptes */
	ALLOC_10,		/* ALLOC_9 with page_size behind count */
};

/* Arguments of uvm_cpu_chunk_alloc(). */
enum chunk_layout {
	CHUNK_UNKNOWN,		/* older ones have no chunk to follow */
	CHUNK_3,		/* (size, flags, chunk) */
	CHUNK_4,		/* (size, flags, node, chunk) */
};

/**
 * struct driver_profile - what is known of the loaded nvidia.ko or nvidia-uvm.ko
 * @state: see enum umacct_driver_state
 * @version: as the driver says it
 * @series: the number before the first dot
 * @alloc: layout of nv_alloc_pages()
 * @chunk: layout of uvm_cpu_chunk_alloc()
 * @native_charge: the driver has the kernel charge its pages by itself
 * @page_pools: the driver keeps freed pages
 * @reason: why @state is UNKNOWN or BROKEN
 */
struct driver_profile {
	enum umacct_driver_state state;
	char version[32];
	unsigned int series;
	enum alloc_layout alloc;
	enum chunk_layout chunk;
	bool native_charge;
	bool page_pools;
	char reason[192];
};

enum hook_owner {
	HOOK_NVIDIA,
	HOOK_UVM,
	HOOK_KERNEL,
};

/**
 * struct hook - a place in the driver or the kernel, and what we do there
 * @name: what it is for, for status
 * @owner: whose function it is
 * @required: without it nothing is accounted
 * @applies: is this the right one for the driver? NULL: always
 * @wanted: is the feature it serves on? NULL: always
 * @probe: the hook itself
 * @state: see enum umacct_hook_state
 * @reason: why @state is FAILED
 */
struct hook {
	const char *name;
	enum hook_owner owner;
	bool required;
	bool (*applies)(const struct driver_profile *profile);
	bool (*wanted)(void);
	struct probe probe;

	enum umacct_hook_state state;
	char reason[96];
};

/* The hooks, in the order of arming; NULL ends the list. Defined in driver.c. */
extern struct hook *const hooks[];

int drivers_init(void);
void drivers_exit(void);
void driver_rearm(void);
void driver_lock(void);
void driver_unlock(void);
const struct driver_profile *driver_profile(enum hook_owner owner);
bool driver_hook_applies(const struct hook *hook);
bool driver_hook_possible(const struct hook *hook);

#endif /* UMACCT_DRIVER_H */
