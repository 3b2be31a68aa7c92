/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading the ledger: a reader takes no lock of it, but passes a function, which is called for each
 * row while the lock is held.
 */
#ifndef UMACCT_READ_H
#define UMACCT_READ_H

#include <linux/types.h>

struct account;
struct cgroup;
struct client;

/**
 * struct account_bounds - what a cgroup could still have
 * @view: it, or one above it, asks for a view
 * @effective: the lowest hard limit that holds for it, in bytes, or UMACCT_UNLIMITED
 * @left: bytes until the first hard limit is reached, or UMACCT_UNLIMITED
 * @reserve: bytes that are left to the machine, and to guarantees that are not its own
 */
struct account_bounds {
	bool view;
	u64 effective;
	u64 left;
	u64 reserve;
};

int umacct_read_account(u64 id, int (*show)(const struct account *account, void *arg), void *arg);
int umacct_read_next_account(u64 *cursor, unsigned int *generation,
			     int (*show)(const struct account *account, void *arg), void *arg);
int umacct_read_next_client(u64 *cursor,
			    int (*show)(const struct client *client,
					const struct account *account, void *arg), void *arg);
void umacct_read_bounds(struct cgroup *cgrp, struct account_bounds *bounds);

#endif /* UMACCT_READ_H */
