/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hash tables of what tenants have: each is as large as all that the machine's memory has
 * room for needs, so that nobody waits longer for what another holds. The kernel's
 * rhashtable grows instead, and for that allocates where a record is inserted, under a
 * lock that doesn't allow it.
 */
#ifndef UMACCT_LEDGER_TABLE_H
#define UMACCT_LEDGER_TABLE_H

#include <linux/hash.h>
#include <linux/list.h>

/**
 * struct table - a hash table
 * @heads: its buckets; NULL before table_init()
 * @bits: there are 2 to the power of this
 */
struct table {
	struct hlist_head *heads;
	unsigned int bits;
};

int table_init(struct table *table, u64 bytes_per_bucket);
void table_exit(struct table *table);

static inline struct hlist_head *table_bucket(const struct table *table, unsigned long key)
{
	return &table->heads[hash_long(key, table->bits)];
}

static inline unsigned int table_buckets(const struct table *table)
{
	return 1U << table->bits;
}

#endif
