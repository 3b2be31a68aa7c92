/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ALLOCATION_H
#define UMACCT_ALLOCATION_H

#include <linux/types.h>

struct account;
struct client;
struct record;

enum allocation_kind {
	ALLOCATION_SYSTEM,		/* nv_alloc_pages() for a client */
	ALLOCATION_METADATA,		/* what a driver keeps because of a client */
	ALLOCATION_DRIVER,		/* any of these for the driver itself */
};

/**
 * struct allocation - an allocation between ledger_begin() and ledger_end()
 * @bytes: what will leave the free list, and @metadata
 * @metadata: what the driver keeps because of it, by a constant of its series; all of
 *	@bytes where it is ALLOCATION_METADATA
 * @page_size: in blocks of this size, in bytes
 * @pages: how many the driver was asked for
 * @kind: what it is
 * @uvm: nvidia-uvm makes it, and its record goes with that driver
 *
 * The caller fills in the above and clears the rest, which is the ledger's:
 *
 * @began: when the driver was asked, in ticks
 * @counted: it is part of the branch's usage already
 * @pending_reserve: @bytes count as pending for the reserve
 * @charge: the account asks the kernel to charge
 * @account: whom it will count for; NULL for the driver's own
 * @client: who makes it; NULL for the driver's own
 * @record: put aside for it, where it must not go unrecorded
 * @penalty_ns: after ledger_end(): how long the task should be made to wait for
 *	being above a soft limit, once it holds no lock of the driver
 * @account_id: the account that the wait counts for, if there is a penalty; or, if the driver
 *	failed, the account of the allocation; 0 if it is not known
 */
struct allocation {
	u64 bytes;
	u64 metadata;
	u64 page_size;
	u32 pages;
	enum allocation_kind kind;
	bool uvm;

	unsigned long began;
	bool counted;
	bool pending_reserve;
	bool charge;
	struct account *account;
	struct client *client;
	struct record *record;
	u64 penalty_ns;
	u64 account_id;
};

/**
 * allocation_init() - a new allocation
 * @alloc: set up, but for @pages and @page_size, which are 0
 * @kind: what it is
 * @bytes: what will leave the free list, and @metadata
 * @metadata: what the driver keeps because of it
 *
 * Each member that is read before it is written, on its own: cheaper than clearing all of it,
 * which the kernel has the compiler do besides unless the variable is __uninitialized.
 *
 * Context: any.
 */
static __always_inline void allocation_init(struct allocation *alloc, enum allocation_kind kind,
					    u64 bytes, u64 metadata)
{
	alloc->bytes = bytes;
	alloc->metadata = metadata;
	alloc->page_size = 0;
	alloc->pages = 0;
	alloc->kind = kind;
	alloc->uvm = false;
	alloc->counted = false;
	alloc->pending_reserve = false;
	alloc->charge = false;
	alloc->account = NULL;
	alloc->client = NULL;
	alloc->record = NULL;
	alloc->penalty_ns = 0;
}

#endif /* UMACCT_ALLOCATION_H */
