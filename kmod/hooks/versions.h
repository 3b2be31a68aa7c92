/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_VERSIONS_H
#define UMACCT_VERSIONS_H

#include <linux/bits.h>
#include <linux/types.h>

#include <umacct.h>

struct module;

/* What the functions that are hooked look like in a driver, a bit each. */
enum driver_layout {
	/* nv_alloc_pages(nv, count, contiguous, cache, zeroed, unencrypted, ptes, priv) */
	LAYOUT_ALLOC_8	= BIT(0),
	/* ... with node before ptes */
	LAYOUT_ALLOC_9	= BIT(1),
	/* ... and with page_size behind count */
	LAYOUT_ALLOC_10	= BIT(2),
	/* uvm_cpu_chunk_alloc(size, flags, chunk) */
	LAYOUT_CHUNK_3	= BIT(3),
	/* ... with node before chunk */
	LAYOUT_CHUNK_4	= BIT(4),
};

/* Whose function a hook is on. The kernel itself is a driver that is always there. */
enum hook_module {
	HOOK_NVIDIA,
	HOOK_UVM,
	HOOK_KERNEL,
	HOOK_MODULES
};

/**
 * struct driver_sizes - what a driver keeps of what, in bytes; 0 where it isn't known
 * @page: of each page of an allocation
 * @object: of an allocation, beside its pages
 * @client: of a client of the resource manager, and its open file
 * @va_space: of an open file of nvidia-uvm's, beside what it takes by size
 * @external: of a range of external memory
 * @managed: of a range of managed memory
 * @block: of 2 MiB of one in which something was touched
 *
 * What the slab allocator takes for it; see versions.c for what was measured, and how.
 */
struct driver_sizes {
	unsigned int page;
	unsigned int object;
	unsigned int client;
	unsigned int va_space;
	unsigned int external;
	unsigned int managed;
	unsigned int block;
};

/**
 * struct driver_profile - what is known of the loaded nvidia.ko or nvidia-uvm.ko
 * @state: see enum umacct_driver_state
 * @version: as the driver says it
 * @layouts: bits of enum driver_layout
 * @live: its initialisation is over: what it takes from now on is for those that ask
 * @mask_seen: the driver has computed a mask for the page allocator, and
 * @native_charge: it had the kernel charge the pages by itself
 * @page_pools: the driver keeps freed pages, or nobody knows whether it does
 * @pools_expected: its series does
 * @sizes: what it keeps of what
 * @reason: why @state is UNKNOWN or BROKEN, or what is to be known besides
 */
struct driver_profile {
	enum umacct_driver_state state;
	char version[32];
	unsigned int layouts;
	bool live;
	bool mask_seen;
	bool native_charge;
	bool page_pools;
	bool pools_expected;
	struct driver_sizes sizes;
	char reason[192];
};

/*
 * Changed under hook_lock() alone, and flags and layouts only while no hook on that
 * module is armed, so whoever was called through one may read them. But the mask is
 * seen by the driver's first allocation.
 */
extern struct driver_profile driver_profiles[HOOK_MODULES];

bool driver_identify(struct driver_profile *profile, const struct module *mod);

static inline const struct driver_profile *driver_profile(enum hook_module module)
{
	return &driver_profiles[module];
}

#endif /* UMACCT_VERSIONS_H */
