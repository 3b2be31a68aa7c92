/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_PROFILE_H
#define UMACCT_PROFILE_H

#include <linux/types.h>

#include <umacct.h>

#include "hooks/driver_versions.h"

struct module;
struct task_struct;

/* The module that has a hooked function. The kernel itself is a driver that is always there. */
enum hook_module {
	HOOK_NVIDIA,
	HOOK_UVM,
	HOOK_KERNEL,
	HOOK_MODULES
};

/**
 * struct driver_profile - what is known of the loaded nvidia.ko or nvidia-uvm.ko
 * @state: see enum umacct_driver_state
 * @version: as the driver says it
 * @layouts: bits of enum driver_layout
 * @live: its initialisation is over: what it takes from now on is for those that ask
 * @loader: until then, the task that loads it, if that was seen
 * @mask_seen: the driver has computed a mask for the pages of a client, and
 * @native_charge: it had the kernel charge the pages by itself
 * @page_pools: the driver keeps freed pages in pools, or may do so
 * @pools_expected: its series does
 * @sizes: what it keeps of what
 * @reason: why @state is UNKNOWN or BROKEN, or what is to be known besides
 */
struct driver_profile {
	enum umacct_driver_state state;
	char version[32];
	unsigned int layouts;
	bool live;
	const struct task_struct *loader;
	bool mask_seen;
	bool native_charge;
	bool page_pools;
	bool pools_expected;
	struct driver_sizes sizes;
	char reason[224];
};

/*
 * Changed under umacct_hook_lock() alone, and flags and layouts only while no hook on that
 * module is armed, so a replacement that was called through one may read them. But the mask is
 * seen by the driver's first allocation.
 */
extern struct driver_profile umacct_driver_profiles[HOOK_MODULES];

bool umacct_driver_identify(struct driver_profile *profile, const struct module *mod);

static inline const struct driver_profile *driver_profile(enum hook_module module)
{
	return &umacct_driver_profiles[module];
}

#endif /* UMACCT_PROFILE_H */
