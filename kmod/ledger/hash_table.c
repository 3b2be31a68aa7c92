// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hash tables; see hash_table.h.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ledger/hash_table.h"

/**
 * umacct_hash_table_init() - make an empty table
 * @table: the table
 * @bytes_per_bucket: it has a bucket for so much of the machine's memory
 *
 * Context: module initialisation.
 * Return: 0 or -ENOMEM.
 */
int umacct_hash_table_init(struct hash_table *table, u64 bytes_per_bucket)
{
	u64 memory = (u64)totalram_pages() << PAGE_SHIFT;

	table->bits = ilog2(clamp_t(u64, memory / bytes_per_bucket, SZ_4K, SZ_4M));
	table->heads = kvcalloc(hash_table_buckets(table), sizeof(*table->heads), GFP_KERNEL);
	return table->heads ? 0 : -ENOMEM;
}

/**
 * umacct_hash_table_exit() - undo umacct_hash_table_init()
 * @table: the table; what is in it is the caller's to free
 *
 * Context: may sleep; nobody uses it any more.
 */
void umacct_hash_table_exit(struct hash_table *table)
{
	kvfree(table->heads);
	table->heads = NULL;
}
