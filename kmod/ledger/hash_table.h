/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hash tables of tenants' objects: sized at load for the most objects that fit into the machine's
 * memory, so that the time of a lookup does not depend on other tenants. The kernel's rhashtable
 * grows instead, and allocates when a record is inserted, under a lock that does not allow it.
 */
#ifndef UMACCT_HASH_TABLE_H
#define UMACCT_HASH_TABLE_H

#include <linux/hash.h>
#include <linux/list.h>

/**
 * struct hash_table - a hash table
 * @heads: its buckets; NULL before umacct_hash_table_init()
 * @bits: there are 2 to the power of this
 */
struct hash_table {
	struct hlist_head *heads;
	unsigned int bits;
};

int umacct_hash_table_init(struct hash_table *table, u64 bytes_per_bucket);
void umacct_hash_table_exit(struct hash_table *table);

static inline struct hlist_head *hash_table_bucket(const struct hash_table *table,
						   unsigned long key)
{
	return &table->heads[hash_long(key, table->bits)];
}

static inline unsigned int hash_table_buckets(const struct hash_table *table)
{
	return 1U << table->bits;
}

#endif /* UMACCT_HASH_TABLE_H */
