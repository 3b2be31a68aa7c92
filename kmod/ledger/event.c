// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events on their way from an allocation, where the driver's locks are held, to
 * the listeners. A fixed queue takes them; a work item hands them to whom
 * event_init() names. What doesn't fit is dropped, but has used up its sequence
 * number, so that a reader sees the gap.
 */
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "ledger/account.h"
#include "ledger/event.h"
#include "ledger/lock.h"

#define EVENT_QUEUE	1024

/* Guarded by ledger_lock. */
static struct event queue[EVENT_QUEUE];
static unsigned int head, queued;
static u64 posted, lost;

static void (*send_event)(const struct event *event);

static void event_work_fn(struct work_struct *work);
static DECLARE_WORK(event_work, event_work_fn);

/**
 * event_init() - say who tells the listeners
 * @send: called with each event, by one task at a time; may sleep
 *
 * Context: module initialisation; until then, events wait.
 */
void event_init(void (*send)(const struct event *event))
{
	/* Pairs with the acquire below. */
	smp_store_release(&send_event, send);
	event_kick();
}

/**
 * event_post_locked() - queue an event about the current task
 * @type: what happened
 * @account: of the task
 * @limit_account: whose limit it was, or NULL
 * @size: bytes
 * @usage: bytes
 * @limit: bytes
 *
 * event_kick() must follow when the lock is dropped.
 *
 * Context: ledger_lock held.
 */
void event_post_locked(enum umacct_event_type type, struct account *account,
		       struct account *limit_account, u64 size, u64 usage, u64 limit)
{
	struct event *event;

	lockdep_assert_held(&ledger_lock);
	posted++;
	if (queued == EVENT_QUEUE) {
		lost++;
		return;
	}
	event = &queue[(head + queued++) % EVENT_QUEUE];
	*event = (struct event) {
		.type = type,
		.seq = posted,
		.time = ktime_get_real_ns(),
		.account = account,
		.limit_account = limit_account,
		.pid = task_tgid_nr(current),
		.size = size,
		.usage = usage,
		.limit = limit,
	};
	memcpy(event->comm, current->comm, sizeof(event->comm));
	event->comm[sizeof(event->comm) - 1] = '\0';
	account->refs++;
	if (limit_account)
		limit_account->refs++;
}

static bool event_take(struct event *event)
{
	bool taken = false;

	raw_spin_lock(&ledger_lock);
	if (queued) {
		*event = queue[head];
		head = (head + 1) % EVENT_QUEUE;
		queued--;
		taken = true;
	}
	raw_spin_unlock(&ledger_lock);
	return taken;
}

static void event_release(struct event *event)
{
	account_put(event->account);
	if (event->limit_account)
		account_put(event->limit_account);
}

static void event_work_fn(struct work_struct *work)
{
	/* Pairs with the release above. */
	void (*send)(const struct event *event) = smp_load_acquire(&send_event);
	struct event event;

	while (send && event_take(&event)) {
		send(&event);
		event_release(&event);
	}
}

/**
 * event_kick() - have queued events sent
 *
 * Context: any but under ledger_lock.
 */
void event_kick(void)
{
	if (READ_ONCE(queued))
		schedule_work(&event_work);
}

/**
 * event_counts_locked() - how the delivery of events goes
 * @counts: filled in
 *
 * Context: ledger_lock held.
 */
void event_counts_locked(struct event_counts *counts)
{
	lockdep_assert_held(&ledger_lock);
	counts->posted = posted;
	counts->lost = lost;
}

/**
 * event_flush() - send what is queued
 *
 * Context: may sleep.
 */
void event_flush(void)
{
	event_kick();
	flush_work(&event_work);
}

/**
 * event_exit() - forget what is queued
 *
 * Context: module exit; nobody can post or listen any more.
 */
void event_exit(void)
{
	struct event event;

	cancel_work_sync(&event_work);
	while (event_take(&event))
		event_release(&event);
}
