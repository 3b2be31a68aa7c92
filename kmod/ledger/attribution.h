/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ATTRIBUTION_H
#define UMACCT_ATTRIBUTION_H

#include "ledger/allocation.h"

void attribution_lock(struct allocation *alloc);
void attribution_put_locked(struct account *account, struct client *client);

#endif /* UMACCT_ATTRIBUTION_H */
