// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much memory the driver could have: what the kernel says is available, less what the driver
 * can't get of that, and what it keeps itself.
 */
#include <linux/mm.h>
#include <linux/vmstat.h>

#include "ledger/available.h"
#include "memcg.h"
#include "pools.h"

/*
 * What the driver keeps in its pools, as far as MemAvailable hasn't got it: from 595.99 on the
 * driver has it among what the kernel's drivers can give back.
 */
static u64 pooled_beside_available(void)
{
	u64 pooled, counted;

	if (!umacct_pools_read(&pooled))
		return 0;
	counted = (u64)global_node_page_state_pages(NR_KERNEL_MISC_RECLAIMABLE) << PAGE_SHIFT;
	return pooled - min(pooled, counted);
}

static unsigned long cache_pages(void)
{
	return global_node_page_state(NR_ACTIVE_FILE) + global_node_page_state(NR_INACTIVE_FILE);
}

/*
 * What MemAvailable counts of memory that cgroups keep by memory.min, at the most: all page
 * cache and all of the kernel's objects that could be given back may be theirs.
 */
static unsigned long available_in_protected(void)
{
	unsigned long pages = umacct_memcg_protected();

	if (likely(!pages))
		return 0;
	return min(pages, cache_pages() + global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B));
}

/* Set aside at boot. To look at each node would cost each view 170 instructions. */
static unsigned long cma_areas __ro_after_init;

/**
 * umacct_available_init() - see what doesn't change
 *
 * Context: module initialisation.
 */
void umacct_available_init(void)
{
	int nid, zone;

	for_each_online_node(nid)
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			cma_areas += zone_cma_pages(&NODE_DATA(nid)->node_zones[zone]);
}

/*
 * What MemAvailable counts of CMA areas, at the most: their free pages, and page cache. It
 * isn't known how much page cache lies there: no more than there is, and no more than is
 * in use of the areas.
 */
static unsigned long available_in_cma(void)
{
	unsigned long areas = cma_areas, free;

	if (likely(!areas))
		return 0;
	free = global_zone_page_state(NR_FREE_CMA_PAGES);
	return free + min(cache_pages(), areas - min(areas, free));
}

/**
 * umacct_available_of() - how much memory the driver could have
 * @pages: what si_mem_available() says just now
 *
 * That, in bytes, without what is in CMA areas: the driver's pages can't be
 * moved, so they are not taken from there. Without page cache that cgroups keep by
 * memory.min. And what the driver keeps in its pools; if that isn't known, nothing is
 * counted on.
 *
 * Context: may sleep.
 */
u64 umacct_available_of(long pages)
{
	pages -= available_in_cma() + available_in_protected();
	return pooled_beside_available() + (pages > 0 ? (u64)pages << PAGE_SHIFT : 0);
}
