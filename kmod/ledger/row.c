// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>

#include "ledger/lock.h"
#include "ledger/row.h"

/* Guarded by umacct_ledger_lock. */
static u64 last_seq;

/**
 * umacct_row_add_locked() - list an object behind all others
 * @rows: the list
 * @row: the object's; gets its number
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_row_add_locked(struct rows *rows, struct row *row)
{
	struct rb_node **link = &rows->root.rb_node, *parent = NULL;

	lockdep_assert_held(&umacct_ledger_lock);
	while (*link) {
		parent = *link;
		link = &parent->rb_right;
	}
	row->seq = ++last_seq;
	rb_link_node(&row->node, parent, link);
	rb_insert_color(&row->node, &rows->root);
	WRITE_ONCE(rows->nr, rows->nr + 1);
}

/**
 * umacct_row_remove_locked() - take an object off its list
 * @rows: the list
 * @row: the object's
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_row_remove_locked(struct rows *rows, struct row *row)
{
	lockdep_assert_held(&umacct_ledger_lock);
	rb_erase(&row->node, &rows->root);
	RB_CLEAR_NODE(&row->node);
	WRITE_ONCE(rows->nr, rows->nr - 1);
}

/**
 * umacct_row_after_locked() - the next row
 * @rows: the list
 * @seq: number of the last one, 0 for none
 *
 * Context: umacct_ledger_lock held.
 * Return: the row, or NULL if there is none with a larger number.
 */
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
