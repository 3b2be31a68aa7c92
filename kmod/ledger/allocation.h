/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ALLOCATION_H
#define UMACCT_ALLOCATION_H

#include <linux/types.h>

struct account;
struct client;
struct record;

enum allocation_kind {
	ALLOCATION_SYSTEM,		/* nv_alloc_pages() for a client */
	ALLOCATION_MANAGED,		/* nvidia-uvm's pages for a client */
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
 * @penalty_id: the account that the wait counts for
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
	u64 penalty_id;
};

#endif /* UMACCT_ALLOCATION_H */
