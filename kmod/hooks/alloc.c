// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens at the functions of nvidia.ko.
 *
 * All of them run in process context, may sleep, and are called with the
 * driver's API lock held.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "hooks/adapter.h"
#include "hooks/alloc.h"
#include "hooks/call.h"
#include "hooks/charge.h"
#include "hooks/throttle.h"
#include "ledger/ledger.h"
#include "trace.h"

#define NV_OK			0x00
#define NV_ERR_NO_MEMORY	0x51

DECLARE_REDIRECT(void, free_system_pages, (void *at));
DECLARE_REDIRECT(void, free_contig_pages, (void *at));

/**
 * struct page_request - a call of nv_alloc_pages()
 * @alloc: what the ledger is told
 * @call: what nv_compute_gfp_mask()'s hook is told
 * @charge: what charge_begin() said
 * @charged: the pages are
 * @contiguous: as asked for
 */
struct page_request {
	struct allocation alloc;
	struct call call;
	enum charge_answer charge;
	bool charged;
	bool contiguous;
};

/*
 * What leaves the free list. A contiguous request takes one block, of a power of
 * two of pages; any other takes whole blocks of page_size.
 */
static u64 bytes_taken(u32 count, u64 page_size, bool contiguous)
{
	u64 pages = count;

	if (!count)
		return 0;
	if (contiguous)
		pages = roundup_pow_of_two(pages);
	else if (page_size > PAGE_SIZE)
		pages = round_up(pages, 1ULL << get_order(page_size));
	return pages << PAGE_SHIFT;
}

/*
 * May the current task be bringing an adapter up? Without the hook that says so: no
 * adapter starts in an ioctl by which a process asks for something of its own. If
 * ioctls aren't seen either, nobody is taken for one, or no limit would hold.
 */
static bool adapter_may_start(void)
{
	const struct call *call = call_current();

	if (likely(hook_armed(&hook_init_adapter)))
		return unlikely(call) && call->initialising;
	while (call && !call->asks)
		call = call->outer;
	return !call && hook_armed(&hook_ioctl);
}

/* Kernel threads work for the driver, and so does whoever happens to bring an adapter up. */
static enum allocation_kind kind_of_caller(void)
{
	if (unlikely((current->flags & PF_KTHREAD) || !current->mm))
		return ALLOCATION_DRIVER;
	return unlikely(adapter_may_start()) ? ALLOCATION_DRIVER : ALLOCATION_SYSTEM;
}

static __always_inline bool request_begin(struct page_request *req, u32 count, u64 page_size,
					  bool contiguous, u8 *zeroed)
{
	req->alloc = (struct allocation) {
		.bytes = bytes_taken(count, page_size, contiguous),
		.pages = count,
		.page_size = page_size,
		.kind = kind_of_caller(),
	};
	req->contiguous = contiguous;
	req->charge = CHARGE_OFF;
	if (!ledger_begin(&req->alloc)) {
		trace_umacct_refuse(req->alloc.bytes, count, page_size);
		return false;
	}
	if (unlikely(req->alloc.charge)) {
		req->charge = charge_begin(&req->call, req->alloc.bytes, zeroed);
		if (unlikely(req->charge == CHARGE_REFUSED)) {
			ledger_end(&req->alloc, false, 0, false);
			return false;
		}
	}
	return true;
}

/* Return: false if what was allocated has to go back: it is not what was asked for. */
static __always_inline bool request_good(struct page_request *req, u32 status)
{
	if (likely(req->charge == CHARGE_OFF)) {
		req->charged = charge_by_driver();
		return true;
	}
	req->charged = charge_end(&req->call);
	return req->charged || status != NV_OK;
}

static __always_inline void request_end(struct page_request *req, u32 status, void **priv)
{
	unsigned long handle = status == NV_OK ? (unsigned long)*priv : 0;

	trace_umacct_alloc(handle, req->alloc.bytes, req->alloc.pages, req->alloc.page_size,
			   req->contiguous, status);
	ledger_end(&req->alloc, status == NV_OK, handle, req->charged);
	if (unlikely(req->alloc.penalty_ns))
		throttle_note(req->alloc.penalty_ns, req->alloc.penalty_id);
}

/*
 * nv_alloc_pages() in each of its layouts, in the kernel's types for the driver's
 * NV_STATUS, NvU32, NvU64, NvBool and NvS32. What it does uses the parameters that
 * all layouts have: all but page_size, node and ptes. @size: of a page, where the
 * layout has none.
 */
#define ALLOC_PAGES(n, size, params, args)				\
	DECLARE_REDIRECT(u32, alloc_pages_##n, params);			\
									\
	struct hook hook_alloc_pages_##n = {				\
		.name = "allocate",					\
		.required = true,					\
		.layouts = LAYOUT_ALLOC_##n,				\
		.probe = {						\
			.symbol = "nvidia:nv_alloc_pages",		\
			REDIRECT(alloc_pages_##n),			\
		},							\
	};								\
									\
	u32 replace_alloc_pages_##n params				\
	{								\
		u32 status = NV_ERR_NO_MEMORY;				\
		struct page_request req;				\
									\
		probe_enter(&hook_alloc_pages_##n.probe);		\
		if (request_begin(&req, count, size, contiguous, &zeroed)) { \
			status = original_alloc_pages_##n args;		\
			if (unlikely(!request_good(&req, status))) {	\
				charge_undo(nv, count, contiguous, cache, priv); \
				status = NV_ERR_NO_MEMORY;		\
			}						\
			request_end(&req, status, priv);		\
		}							\
		probe_leave(&hook_alloc_pages_##n.probe);		\
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
static void freed(void *at)
{
	u64 bytes = ledger_free((unsigned long)at);

	if (bytes)
		trace_umacct_free((unsigned long)at, bytes);
}

void replace_free_system_pages(void *at)
{
	probe_enter(&hook_free_system_pages.probe);
	original_free_system_pages(at);
	freed(at);
	probe_leave(&hook_free_system_pages.probe);
}

void replace_free_contig_pages(void *at)
{
	probe_enter(&hook_free_contig_pages.probe);
	original_free_contig_pages(at);
	freed(at);
	probe_leave(&hook_free_contig_pages.probe);
}

struct hook hook_free_system_pages = {
	.name = "free",
	.required = true,
	.probe = {
		.symbol = "nvidia:nv_free_system_pages",
		REDIRECT(free_system_pages),
	},
};

struct hook hook_free_contig_pages = {
	.name = "free contiguous",
	.required = true,
	.probe = {
		.symbol = "nvidia:nv_free_contig_pages",
		REDIRECT(free_contig_pages),
	},
};
