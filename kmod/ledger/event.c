// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events on their way from an allocation, where the driver's locks are held, to
 * the listeners. An account keeps what happened on it, with a count, until that is
 * told: one that retries at its limit takes no more room, and no more of a
 * listener's time, than its neighbour that is refused once. The accounts that have
 * something to tell take turns, and a listener gets a batch at a time.
 */
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "ledger/account.h"
#include "ledger/base.h"

/* Period in which events are gathered, and number of events sent at a time. */
#define EVENT_DELAY	msecs_to_jiffies(20)
#define EVENT_BATCH	64

/* Guarded by umacct_ledger_lock. */
static LIST_HEAD(waiting);
u32 umacct_event_waiting;
struct event_counts umacct_event_counts;

static int (*send_event)(const struct event *event);

static void event_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(event_work, event_work_fn);

/*
 * Sets the function that sends to the listeners: @send is called with each event, by one task at a
 * time; may sleep; returns an error if not all listeners could be told. Until then, events wait.
 */
void umacct_event_init(int (*send)(const struct event *event))
{
	/* Pairs with the acquire below. */
	smp_store_release(&send_event, send);
	event_kick();
}

/* Notes an event about the current task. event_kick() must follow when the lock is dropped. */
void umacct_event_post_locked(enum umacct_event_type type, struct account *account,
			      struct account *limit_account, u64 size, u64 usage, u64 limit)
{
	struct pending_event *event = &account->pending.events[type - 1];

	lockdep_assert_held(&umacct_ledger_lock);
	if (list_empty(&account->pending.list)) {
		account_hold(account);
		list_add_tail(&account->pending.list, &waiting);
		WRITE_ONCE(umacct_event_waiting, umacct_event_waiting + 1);
	}
	if (limit_account)
		account_hold(limit_account);
	if (event->limit_account)
		account_put(event->limit_account);
	event->count++;
	event->time = ktime_get_real_ns();
	event->size = size;
	event->usage = usage;
	event->limit = limit;
	event->limit_account = limit_account;
	event->pid = task_tgid_nr(current);
	/* Another thread may be changing it: some of both names then. */
	data_race(memcpy(event->comm, current->comm, sizeof(event->comm)));
	event->comm[sizeof(event->comm) - 1] = '\0';
}

/* The one that happened first of those that an account has; there is one. */
static unsigned int first_type(const struct pending *pending)
{
	unsigned int i, first = EVENT_TYPES;

	for (i = 0; i < EVENT_TYPES; i++)
		if (pending->events[i].count &&
		    (first == EVENT_TYPES ||
		     pending->events[i].time < pending->events[first].time))
			first = i;
	return first;
}

static bool event_take(struct event *event)
{
	struct account *account;
	unsigned int type;
	bool taken = false;

	raw_spin_lock_irq(&umacct_ledger_lock);
	account = list_first_entry_or_null(&waiting, struct account, pending.list);
	if (account) {
		type = first_type(&account->pending);
		*event = (struct event) {
			.type = type + 1,
			.seq = ++umacct_event_counts.sent,
			.account = account,
			.what = account->pending.events[type],
		};
		account->pending.events[type] = (struct pending_event) { };
		if (first_type(&account->pending) == EVENT_TYPES) {
			list_del_init(&account->pending.list);
			WRITE_ONCE(umacct_event_waiting, umacct_event_waiting - 1);
		} else {
			account_hold(account);
			list_move_tail(&account->pending.list, &waiting);
		}
		taken = true;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return taken;
}

static void event_release(const struct event *event, bool told)
{
	raw_spin_lock_irq(&umacct_ledger_lock);
	if (!told)
		umacct_event_counts.lost += event->what.count;
	if (event->what.limit_account)
		account_put(event->what.limit_account);
	account_put(event->account);
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

static bool send_some(unsigned int nr)
{
	/* Pairs with the release above. */
	int (*send)(const struct event *event) = smp_load_acquire(&send_event);
	struct event event;

	if (!send)
		return false;
	while (nr--) {
		if (!event_take(&event))
			return false;
		event_release(&event, !send(&event));
	}
	return true;
}

static void event_work_fn(struct work_struct *work)
{
	if (send_some(EVENT_BATCH))
		queue_delayed_work(umacct_ledger_work, &event_work, EVENT_DELAY);
}

/* Has noted events sent; see event_kick(). */
void umacct_event_start_work(void)
{
	queue_delayed_work(umacct_ledger_work, &event_work, EVENT_DELAY);
}

/* Sends what was noted. No event can be posted any more. */
void umacct_event_flush(void)
{
	cancel_delayed_work_sync(&event_work);
	while (send_some(EVENT_BATCH))
		cond_resched();
}

/* Forgets what was noted. There are no posts and no listeners any more. */
void umacct_event_exit(void)
{
	struct event event;

	cancel_delayed_work_sync(&event_work);
	while (event_take(&event))
		event_release(&event, false);
}
