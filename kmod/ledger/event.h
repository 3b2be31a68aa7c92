/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_EVENT_H
#define UMACCT_EVENT_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "ledger/pending.h"

/**
 * struct event - an event, as it is sent to listeners
 * @type: what happened
 * @seq: number of the event, rising by one
 * @account: of the task; referenced
 * @what: how often, and what it was
 */
struct event {
	enum umacct_event_type type;
	u64 seq;
	struct account *account;
	struct pending_event what;
};

/**
 * struct event_counts - how the delivery of events goes
 * @sent: number of the newest event
 * @lost: events that could not be delivered to all listeners
 */
struct event_counts {
	u64 sent;
	u64 lost;
};

void umacct_event_init(int (*send)(const struct event *event));
void umacct_event_post_locked(enum umacct_event_type type, struct account *account,
			      struct account *limit_account, u64 size, u64 usage, u64 limit);
void umacct_event_counts_locked(struct event_counts *counts);
void umacct_event_flush(void);
void umacct_event_exit(void);

/* Accounts with pending events; guarded by umacct_ledger_lock. */
extern u32 umacct_event_waiting;

void umacct_event_start_work(void);

/**
 * event_kick() - have noted events sent
 *
 * Context: any but under umacct_ledger_lock.
 */
static inline void event_kick(void)
{
	if (unlikely(READ_ONCE(umacct_event_waiting)))
		umacct_event_start_work();
}

#endif /* UMACCT_EVENT_H */
