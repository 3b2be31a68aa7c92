/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_GARBAGE_H
#define UMACCT_GARBAGE_H

#include <linux/list.h>

/**
 * struct garbage - what lost its last reference under the lock
 * @accounts: to be freed
 * @clients: to be freed
 *
 * Nothing is freed while the lock is held.
 */
struct garbage {
	struct list_head accounts;
	struct list_head clients;
};

#define DEFINE_GARBAGE(name)	struct garbage name = {				\
	.accounts = LIST_HEAD_INIT(name.accounts),			\
	.clients = LIST_HEAD_INIT(name.clients),			\
}

void garbage_free(struct garbage *garbage);

#endif /* UMACCT_GARBAGE_H */
