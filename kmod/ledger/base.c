// SPDX-License-Identifier: GPL-2.0-only
/* Shared parts of the ledger; see base.h. */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ledger/base.h"

DEFINE_RAW_SPINLOCK(umacct_ledger_lock);

struct workqueue_struct *umacct_ledger_work;

/* --- rows ----------------------------------------------------------------- */

/* Guarded by umacct_ledger_lock. */
static u64 last_seq;

static bool is_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct row, node)->seq < rb_entry(b, struct row, node)->seq;
}

/* Lists an object behind all others, and numbers it. */
void umacct_row_add_locked(struct rows *rows, struct row *row)
{
	lockdep_assert_held(&umacct_ledger_lock);
	row->seq = ++last_seq;
	rb_add(&row->node, &rows->root, is_before);
	WRITE_ONCE(rows->nr, rows->nr + 1);
}

/* Takes an object off its list. */
void umacct_row_remove_locked(struct rows *rows, struct row *row)
{
	lockdep_assert_held(&umacct_ledger_lock);
	rb_erase(&row->node, &rows->root);
	RB_CLEAR_NODE(&row->node);
	WRITE_ONCE(rows->nr, rows->nr - 1);
}

/* The first row with a larger number, or NULL. */
struct row *umacct_row_after_locked(const struct rows *rows, u64 seq)
{
	struct rb_node *at = rows->root.rb_node;
	struct row *next = NULL;

	lockdep_assert_held(&umacct_ledger_lock);
	while (at) {
		struct row *row = rb_entry(at, struct row, node);

		if (row->seq > seq) {
			next = row;
			at = at->rb_left;
		} else {
			at = at->rb_right;
		}
	}
	return next;
}

/* --- hash tables ---------------------------------------------------------- */

/*
 * Makes an empty table, with a bucket for each @bytes_per_bucket of the machine's memory. Returns 0
 * or -ENOMEM.
 */
int umacct_hash_table_init(struct hash_table *table, u64 bytes_per_bucket)
{
	u64 memory = (u64)totalram_pages() << PAGE_SHIFT;

	table->shift = BITS_PER_LONG - ilog2(clamp_t(u64, memory / bytes_per_bucket, SZ_4K, SZ_4M));
	table->heads = kvcalloc(hash_table_buckets(table), sizeof(*table->heads), GFP_KERNEL);
	return table->heads ? 0 : -ENOMEM;
}

/* Frees a table that has no user any more; what is in it is the caller's to free. */
void umacct_hash_table_exit(struct hash_table *table)
{
	kvfree(table->heads);
	table->heads = NULL;
}
