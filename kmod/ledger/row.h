/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows: objects that are listed in the order of their creation, for readers that
 * go through them piece by piece. A reader remembers the number of the last row it
 * saw and asks for the next, so that it holds the lock for one row at a time and
 * goes on where it was whatever came or went meanwhile.
 */
#ifndef UMACCT_ROW_H
#define UMACCT_ROW_H

#include <linux/rbtree.h>
#include <linux/types.h>

/**
 * struct row - what makes an object a row
 * @node: empty while the object isn't listed
 * @seq: its number; rises, also from one kind of rows to another
 */
struct row {
	struct rb_node node;
	u64 seq;
};

/**
 * struct rows - the list
 * @root: by number
 * @nr: how many there are
 */
struct rows {
	struct rb_root root;
	u32 nr;
};

void umacct_row_add_locked(struct rows *rows, struct row *row);
void umacct_row_remove_locked(struct rows *rows, struct row *row);
struct row *umacct_row_after_locked(const struct rows *rows, u64 seq);

#endif /* UMACCT_ROW_H */
