/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_REFUSAL_H
#define UMACCT_REFUSAL_H

#include <linux/types.h>

#include "ledger/allocation.h"

struct account;
struct reserve_room;

/*
 * Allocations refused for the reserve, and because memory ran out to find out whose they were;
 * guarded by umacct_ledger_lock.
 */
extern u64 umacct_refusal_reserve_count;
extern u64 umacct_refusal_unattributed_count;

void umacct_refuse_hard_locked(struct allocation *alloc, struct account *limiting);
void umacct_refuse_reserve_locked(struct allocation *alloc, const struct reserve_room *room);
void umacct_refuse_impossible_locked(struct allocation *alloc);

#endif /* UMACCT_REFUSAL_H */
