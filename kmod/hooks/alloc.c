// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens at nvidia.ko's page allocator. It runs in process context and may sleep; the
 * driver may hold locks of its own.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "hooks/adapter.h"
#include "hooks/alloc.h"
#include "hooks/call.h"
#include "hooks/charge.h"
#include "hooks/nv_status.h"
#include "hooks/way_out.h"
#include "ledger/ledger.h"
#include "trace.h"

DECLARE_REDIRECT(void, free_system_pages, (void *at));
DECLARE_REDIRECT(void, free_contig_pages, (void *at));

static __always_inline u64 pages_per_block(u64 page_size)
{
	return page_size > PAGE_SIZE ? 1ULL << get_order(page_size) : 1;
}

/*
 * What leaves the free list. A contiguous request takes one block, of a power of
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

/* What the driver keeps of a client's memory beside the pages: of each page, and of the object. */
static __always_inline u64 metadata_of(enum allocation_kind kind, u32 count)
{
	const struct driver_sizes *sizes = &driver_profile(HOOK_NVIDIA)->sizes;

	if (unlikely(kind != ALLOCATION_SYSTEM))
		return 0;
	return (u64)count * sizes->page + sizes->object;
}

static __always_inline bool alloc_begin(struct allocation *alloc)
{
	if (likely(ledger_begin(alloc)))
		return true;
	way_out_refused();
	trace_umacct_refuse(alloc->bytes - alloc->metadata, alloc->pages, alloc->page_size);
	return false;
}

static noinline void alloc_failed(const struct allocation *alloc, u32 status)
{
	if (status == NV_ERR_NO_MEMORY && alloc->kind == ALLOCATION_SYSTEM && alloc->account_id)
		umacct_way_out_failed(alloc->account_id, alloc->bytes, alloc->pages,
				      pages_per_block(alloc->page_size));
}

static __always_inline void alloc_end(struct allocation *alloc, u32 status, u8 contiguous,
				      bool charged, void **priv)
{
	unsigned long handle = status == NV_OK ? (unsigned long)*priv : 0;

	if (trace_umacct_alloc_enabled())
		trace_umacct_alloc(handle, alloc->bytes - alloc->metadata, alloc->pages,
				   alloc->page_size, contiguous, status);
	ledger_end(alloc, status == NV_OK, handle, charged);
	if (unlikely(status != NV_OK)) {
		alloc_failed(alloc, status);
		return;
	}
	way_out_succeeded(alloc->pages);
	if (unlikely(alloc->penalty_ns))
		umacct_way_out_throttled(alloc->penalty_ns, alloc->account_id);
}

#define UNWRAP(...)	__VA_ARGS__

/*
 * nv_alloc_pages() in each of its layouts, in the kernel's types for the driver's
 * NV_STATUS, NvU32, NvU64, NvBool and NvS32. What it does uses the parameters that
 * all layouts have: all but page_size, node and ptes. @size: of a page, where the
 * layout has none.
 */
#define ALLOC_PAGES(n, size, params, args)				\
	DECLARE_REDIRECT(u32, alloc_pages_##n, params);			\
									\
	struct hook umacct_hook_alloc_pages_##n = {			\
		.name = "allocate",					\
		.required = true,					\
		.layouts = LAYOUT_ALLOC_##n,				\
		.probe = {						\
			.symbol = "nvidia:nv_alloc_pages",		\
			REDIRECT(alloc_pages_##n),			\
		},							\
	};								\
									\
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
		const u64 bytes = bytes_taken(count, size, contiguous);	\
		const enum allocation_kind kind =			\
			kind_for_caller(HOOK_NVIDIA, ALLOCATION_SYSTEM); \
		const u64 metadata = metadata_of(kind, count);		\
		struct allocation alloc __uninitialized;		\
		u32 status = NV_ERR_NO_MEMORY;				\
		bool charged = false;					\
									\
		probe_enter(&umacct_hook_alloc_pages_##n.probe);	\
		allocation_init(&alloc, kind, bytes + metadata, metadata); \
		alloc.pages = count;					\
		alloc.page_size = size;					\
		if (alloc_begin(&alloc)) {				\
			if (unlikely(alloc.charge || charge_keeps_from_pools())) \
				status = charged_alloc_pages_##n(bytes, &charged, UNWRAP args); \
			else						\
				status = umacct_original_alloc_pages_##n args; \
			alloc_end(&alloc, status, contiguous, charged || charge_alone(), priv); \
		}							\
		probe_leave(&umacct_hook_alloc_pages_##n.probe);	\
		return status;						\
	}

ALLOC_PAGES(8, PAGE_SIZE,
	    (void *nv, u32 count, u8 contiguous, u32 cache, u8 zeroed, u8 unencrypted,
	     u64 *ptes, void **priv),
	    (nv, count, contiguous, cache, zeroed, unencrypted, ptes, priv))

ALLOC_PAGES(9, PAGE_SIZE,
	    (void *nv, u32 count, u8 contiguous, u32 cache, u8 zeroed, u8 unencrypted,
	     s32 node, u64 *ptes, void **priv),
	    (nv, count, contiguous, cache, zeroed, unencrypted, node, ptes, priv))

ALLOC_PAGES(10, page_size,
	    (void *nv, u32 count, u64 page_size, u8 contiguous, u32 cache, u8 zeroed,
	     u8 unencrypted, s32 node, u64 *ptes, void **priv),
	    (nv, count, page_size, contiguous, cache, zeroed, unencrypted, node, ptes, priv))

/*
 * The pages are really gone when the original has run; the handle stays valid
 * until its caller frees it. Handles that the ledger doesn't know are normal:
 * 590 and later come here from nv_free_contig_pages() too, and from the failure
 * path of an allocation.
 */
static __always_inline void freed(void *at)
{
	u64 bytes = ledger_free((unsigned long)at);

	if (bytes)
		trace_umacct_free((unsigned long)at, bytes);
}

void umacct_replace_free_system_pages(void *at)
{
	probe_enter(&umacct_hook_free_system_pages.probe);
	umacct_original_free_system_pages(at);
	freed(at);
	probe_leave(&umacct_hook_free_system_pages.probe);
}

void umacct_replace_free_contig_pages(void *at)
{
	probe_enter(&umacct_hook_free_contig_pages.probe);
	umacct_original_free_contig_pages(at);
	freed(at);
	probe_leave(&umacct_hook_free_contig_pages.probe);
}

struct hook umacct_hook_free_system_pages = {
	.name = "free",
	.required = true,
	.probe = {
		.symbol = "nvidia:nv_free_system_pages",
		REDIRECT(free_system_pages),
	},
};

struct hook umacct_hook_free_contig_pages = {
	.name = "free contiguous",
	.required = true,
	.probe = {
		.symbol = "nvidia:nv_free_contig_pages",
		REDIRECT(free_contig_pages),
	},
};
