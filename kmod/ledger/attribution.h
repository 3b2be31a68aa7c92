/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ATTRIBUTION_H
#define UMACCT_ATTRIBUTION_H

#include "ledger/account.h"
#include "ledger/allocation.h"
#include "ledger/lock.h"
#include "ledger/client.h"

void attribution_lock(struct allocation *alloc) __acquires(&ledger_lock);

/**
 * attribution_put_locked() - drop the reference of an allocation or a record
 * @account: whom it counts for, or NULL
 * @client: who made it, or NULL
 *
 * Context: ledger_lock held.
 */
static inline void attribution_put_locked(struct account *account, struct client *client)
{
	if (likely(client))
		client_put_locked(client);
	else if (account)
		account_put_locked(account);
}

#endif /* UMACCT_ATTRIBUTION_H */
