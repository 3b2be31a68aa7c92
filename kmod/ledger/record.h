/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_RECORD_H
#define UMACCT_RECORD_H

#include <linux/list.h>
#include <linux/types.h>

#include "ledger/allocation.h"

struct account;
struct client;

/**
 * struct record - one live allocation
 * @key: the driver's handle
 * @bytes: what left the free list
 * @client: who made it; NULL for the driver itself and where no process did
 * @account: whom it counts for; NULL for the driver itself
 * @kind: what it is
 * @charged: the kernel's memory controller sees it
 *
 * Holds a reference on @client, or on @account where there is no client.
 */
struct record {
	struct hlist_node hash;
	unsigned long key;
	u64 bytes;
	struct client *client;
	struct account *account;
	enum record_kind kind;
	bool charged;
};

#endif /* UMACCT_RECORD_H */
