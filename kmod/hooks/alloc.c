// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks of nvidia.ko's page allocator. It runs in process context and may sleep; the
 * driver may hold locks of its own.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/scatterlist.h>

#include "hooks/adapter.h"
#include "hooks/call.h"
#include "hooks/charge.h"
#include "hooks/hook.h"
#include "hooks/nv_status.h"
#include "hooks/way_out.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"

static __always_inline u64 pages_per_block(u64 page_size)
{
	return page_size > PAGE_SIZE ? 1ULL << get_order(page_size) : 1;
}

/*
 * The bytes that leave the free list. A contiguous request takes one block, of a power of
 * two of pages; any other takes whole blocks of page_size. @contiguous is as the driver
 * has it: no bool is made of it.
 */
static __always_inline u64 bytes_taken(u32 count, u64 page_size, u8 contiguous)
{
	u64 pages = count;

	if (!contiguous)
		pages = round_up(pages, pages_per_block(page_size));
	else if (count)
		pages = roundup_pow_of_two(pages);
	return pages << PAGE_SHIFT;
}

/*
 * The memory that a mapping for a GPU takes, which no allocation of the driver's shows: an entry of the
 * scatterlist for each block, and one of the IOMMU's tables for each page of a block that is smaller
 * than a large page of these. From the structures' sizes; a block that joins its neighbour needs no
 * entry of its own, and without a translating IOMMU there are no tables.
 */
#define IOMMU_ENTRY	sizeof(u64)

static __always_inline u64 mapping_bytes(u32 count, u64 page_size)
{
	const u64 blocks = DIV_ROUND_UP((u64)count << PAGE_SHIFT, page_size);

	return blocks * sizeof(struct scatterlist) +
	       (page_size < PMD_SIZE ? (u64)count * IOMMU_ENTRY : 0);
}

/*
 * Metadata of a client's memory: of each page, of the object, and of its mapping where the memory is
 * a GPU's (@nv) and in pieces.
 */
static __always_inline u64 metadata_of(enum allocation_kind kind, const void *nv, u32 count,
				       u64 page_size, u8 contiguous)
{
	const struct driver_sizes *sizes = &driver_profile(HOOK_NVIDIA)->sizes;
	u64 bytes;

	if (unlikely(kind != ALLOCATION_SYSTEM))
		return 0;
	bytes = (u64)count * sizes->page + sizes->object;
	if (nv && !contiguous)
		bytes += mapping_bytes(count, max_t(u64, page_size, PAGE_SIZE));
	return bytes;
}

static __always_inline bool alloc_begin(struct allocation *alloc)
{
	if (unlikely(limit_is_impossible(alloc->bytes - alloc->metadata)) &&
	    alloc->kind != ALLOCATION_DRIVER)
		umacct_ledger_refuse_impossible(alloc);
	else if (likely(ledger_begin(alloc)))
		return true;
	umacct_way_out_short(&alloc->shortage);
	return false;
}

static noinline void alloc_failed(const struct allocation *alloc, u32 status)
{
	if (status == NV_ERR_NO_MEMORY && alloc->kind == ALLOCATION_SYSTEM && alloc->account_id)
		umacct_way_out_failed(alloc->account_id, alloc->bytes, alloc->pages,
				      pages_per_block(alloc->page_size));
}

static __always_inline void alloc_end(struct allocation *alloc, u32 status, bool charged,
				      void **priv)
{
	ledger_end(alloc, status == NV_OK, status == NV_OK ? (unsigned long)*priv : 0, charged);
	if (unlikely(status != NV_OK)) {
		alloc_failed(alloc, status);
		return;
	}
	way_out_succeeded(alloc->pages);
	if (unlikely(alloc->penalty_ns))
		umacct_way_out_throttled(alloc->penalty_ns, alloc->account_id);
}

#define UNWRAP(...)	__VA_ARGS__

/* nv_alloc_pages() in each layout. It uses what all of them have: all but page_size, node and ptes. */
#define HOOK(...)
#define ALLOC_PAGES(n, size, params, args)				\
	static noinline							\
	u32 charged_alloc_pages_##n(u64 bytes, bool *charged, UNWRAP params)	\
	{								\
		enum charge_answer answer;				\
		struct call call = { .account_pages = true, .bytes = bytes }; \
		u32 status;						\
									\
		answer = umacct_charge_begin(&call, &zeroed);		\
		if (answer == CHARGE_REFUSED)				\
			return NV_ERR_NO_MEMORY;			\
		status = umacct_original_alloc_pages_##n args;		\
		if (answer == CHARGE_OFF)				\
			return status;					\
		*charged = charge_end(&call);				\
		if (status != NV_OK || *charged)			\
			return status;					\
		umacct_charge_undo(nv, count, contiguous, cache, priv);	\
		return NV_ERR_NO_MEMORY;				\
	}								\
									\
	u32 umacct_replace_alloc_pages_##n params			\
	{								\
		INSIDE(alloc_pages_##n);				\
		const u64 bytes = bytes_taken(count, size, contiguous);	\
		const enum allocation_kind kind =			\
			kind_for_caller(HOOK_NVIDIA, ALLOCATION_SYSTEM); \
		const u64 metadata = metadata_of(kind, nv, count, size, contiguous); \
		struct allocation alloc __uninitialized;		\
		bool charged = false;					\
		u32 status;						\
									\
		allocation_init(&alloc, kind, bytes + metadata, metadata); \
		alloc.pages = count;					\
		alloc.page_size = size;					\
		if (!alloc_begin(&alloc))				\
			return NV_ERR_NO_MEMORY;			\
		if (unlikely(alloc.charge || charge_keeps_from_pools())) \
			status = charged_alloc_pages_##n(bytes, &charged, UNWRAP args); \
		else							\
			status = umacct_original_alloc_pages_##n args;	\
		alloc_end(&alloc, status, charged || charge_alone(), priv); \
		return status;						\
	}
#include "hooks/hooks.h"

/*
 * The pages are really gone when the original has run; the handle stays valid
 * until its caller frees it. Handles that the ledger doesn't know are normal:
 * 590 and later come here from nv_free_contig_pages() too, and from the failure
 * path of an allocation.
 */
void umacct_replace_free_system_pages(void *at)
{
	INSIDE(free_system_pages);

	umacct_original_free_system_pages(at);
	ledger_free((unsigned long)at);
}

void umacct_replace_free_contig_pages(void *at)
{
	INSIDE(free_contig_pages);

	umacct_original_free_contig_pages(at);
	ledger_free((unsigned long)at);
}
