/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_EVENT_H
#define UMACCT_EVENT_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "ledger/untold.h"

/**
 * struct event - something that listeners are told
 * @type: what happened
 * @seq: number of the event, rising by one
 * @account: of the task; referenced
 * @what: how often, and what it was
 */
struct event {
	enum umacct_event_type type;
	u64 seq;
	struct account *account;
	struct untold_event what;
};

/**
 * struct event_counts - how the delivery of events goes
 * @sent: number of the newest event
 * @lost: how often something happened that not all listeners could be told
 */
struct event_counts {
	u64 sent;
	u64 lost;
};

void event_init(int (*send)(const struct event *event));
void event_post_locked(enum umacct_event_type type, struct account *account,
		       struct account *limit_account, u64 size, u64 usage, u64 limit);
void event_counts_locked(struct event_counts *counts);
void event_flush(void);
void event_exit(void);

/* Accounts that have something to tell; guarded by ledger_lock. */
extern u32 event_waiting;

void event_start_work(void);

/**
 * event_kick() - have noted events sent
 *
 * Context: any but under ledger_lock.
 */
static inline void event_kick(void)
{
	if (unlikely(READ_ONCE(event_waiting)))
		event_start_work();
}

#endif /* UMACCT_EVENT_H */
