// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger's books: an allocation begins, ends, and is freed one day. See
 * ledger.h for what is kept, lock.h for how it is guarded.
 */
#include "ledger/account.h"
#include "ledger/attribution.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/record.h"
#include "ledger/removal.h"
#include "ledger/settings.h"
#include "ledger/work.h"

struct workqueue_struct *ledger_work;

/* Guarded by ledger_lock. */
static u64 unattributed_count;

static __always_inline bool precheck(struct allocation *alloc, const struct limit_room *room)
{
	bool allowed = false;

	record_refill();
	raw_spin_lock_irq(&ledger_lock);
	attribution_find_locked(alloc);
	if (unlikely(!alloc->account || !record_reserve_locked(alloc)))
		unattributed_count++;
	else
		allowed = limit_begin_locked(alloc, room);
	if (!allowed) {
		record_unreserve_locked(alloc);
		attribution_put_locked(alloc->account, alloc->client);
	}
	raw_spin_unlock_irq(&ledger_lock);
	if (!allowed)
		event_kick();
	return allowed;
}

/* Apart from the rest: whoever has a limit alone doesn't pay for it. */
static noinline bool precheck_reserve(struct allocation *alloc)
{
	struct limit_room room = limit_room();

	return precheck(alloc, &room);
}

/**
 * ledger_precheck() - ledger_begin(), where limits, a reserve or charging may apply
 * @alloc: the allocation
 *
 * What can't be put on an account or can't be recorded, for want of memory, could
 * escape them: it is refused.
 *
 * Context: process context, may sleep; the driver's locks are held.
 * Return: false if a limit forbids it.
 */
bool ledger_precheck(struct allocation *alloc)
{
	if (unlikely(READ_ONCE(settings.reserve)))
		return precheck_reserve(alloc);
	return precheck(alloc, NULL);
}

static noinline void failed_locked(struct allocation *alloc)
{
	struct account *account;

	lockdep_assert_held(&ledger_lock);
	if (alloc->counted)
		limit_uncharge_locked(alloc);
	if (alloc->kind == ALLOCATION_SYSTEM)
		for (account = alloc->account; account; account = account->parent)
			account->failures++;
	record_unreserve_locked(alloc);
	attribution_put_locked(alloc->account, alloc->client);
}

/*
 * How long a task was in the driver's allocator: what it took to find and clear the pages,
 * reclaim and compaction above all where there are none. Counted in ticks, which cost no
 * clock's reading: the sum is right on the average, as the tick's own of processor time.
 */
static noinline void count_time_locked(const struct allocation *alloc, unsigned long ticks)
{
	u64 ns = (u64)ticks * TICK_NSEC;
	struct account *account;

	lockdep_assert_held(&ledger_lock);
	for (account = alloc->account; account; account = account->parent) {
		account->alloc_time_ns += ns;
		account->alloc_time_max_ns = max(account->alloc_time_max_ns, ns);
	}
}

/**
 * ledger_end() - the driver has answered
 * @alloc: what ledger_begin() said yes to
 * @success: it has allocated
 * @key: its handle, if so
 * @charged: the kernel's memory controller was charged
 *
 * Sets the penalty of @alloc. What can't be recorded for want of memory is counted
 * as untracked.
 *
 * Context: process context, may sleep; the driver's locks are held.
 */
void ledger_end(struct allocation *alloc, bool success, unsigned long key, bool charged)
{
	unsigned long ticks = jiffies - alloc->began;

	record_refill();
	attribution_lock(alloc);
	limit_end_locked(alloc);
	if (unlikely(ticks) && alloc->kind == ALLOCATION_SYSTEM)
		count_time_locked(alloc, ticks);
	if (likely(success))
		record_insert_locked(alloc, key, charged);
	else
		failed_locked(alloc);
	raw_spin_unlock_irq(&ledger_lock);
	event_kick();
}

/**
 * ledger_free() - the driver has given memory back
 * @key: its handle, which nobody else has got yet; one that was never recorded is ignored
 *
 * Context: any but an interrupt or NMI.
 * Return: the bytes of the pages that were given back, 0 if the handle is not known.
 */
u64 ledger_free(unsigned long key)
{
	unsigned long flags;
	u64 bytes;

	raw_spin_lock_irqsave(&ledger_lock, flags);
	bytes = record_erase_locked(key);
	raw_spin_unlock_irqrestore(&ledger_lock, flags);
	record_trim();
	event_kick();
	return bytes;
}

/**
 * ledger_take() - the driver is about to give memory back, and the handle with it
 * @key: its handle
 *
 * What it was stays in its account until it is really gone: ledger_settle() must follow,
 * or ledger_put_back(). The handle may be another allocation's meanwhile.
 *
 * Context: any but an interrupt or NMI.
 * Return: the record, or NULL if the handle is not known.
 */
struct record *ledger_take(unsigned long key)
{
	struct record *record;
	unsigned long flags;

	raw_spin_lock_irqsave(&ledger_lock, flags);
	record = record_take_locked(key);
	raw_spin_unlock_irqrestore(&ledger_lock, flags);
	return record;
}

/**
 * ledger_put_back() - the driver has not given the memory back
 * @record: from ledger_take(), or NULL
 *
 * Context: any but an interrupt or NMI.
 */
void ledger_put_back(struct record *record)
{
	unsigned long flags;

	if (!record)
		return;
	raw_spin_lock_irqsave(&ledger_lock, flags);
	record_put_back_locked(record);
	raw_spin_unlock_irqrestore(&ledger_lock, flags);
}

/**
 * ledger_settle() - the driver has given the memory back
 * @record: from ledger_take(), or NULL
 *
 * Context: any but an interrupt or NMI.
 * Return: the bytes of the pages that it was, or 0.
 */
u64 ledger_settle(struct record *record)
{
	unsigned long flags;
	u64 bytes;

	if (!record)
		return 0;
	raw_spin_lock_irqsave(&ledger_lock, flags);
	bytes = record_settle_locked(record);
	raw_spin_unlock_irqrestore(&ledger_lock, flags);
	record_trim();
	event_kick();
	return bytes;
}

/**
 * ledger_drop() - forget the records of a driver that is gone
 * @uvm: nvidia-uvm's, otherwise nvidia's
 *
 * Context: may sleep; no hook of that driver is armed.
 * Return: how many there were.
 */
u64 ledger_drop(bool uvm)
{
	u64 dropped = record_drop(uvm);

	event_kick();
	return dropped;
}

/**
 * ledger_refresh() - see to it that what is gone is not shown
 *
 * Context: may sleep; ledger_lock not held.
 */
void ledger_refresh(void)
{
	removal_refresh();
}

/**
 * ledger_read_totals() - the ledger's sums
 * @totals: filled in
 *
 * Context: ledger_lock not held.
 */
void ledger_read_totals(struct ledger_totals *totals)
{
	raw_spin_lock_irq(&ledger_lock);
	*totals = (struct ledger_totals) {
		.usage = account_root->usage,
		.charged = account_root->charged,
		.managed = account_root->managed,
		.metadata = account_root->metadata,
		.records = record_totals,
		.settings = settings,
		.reserve_count = limit_reserve_count,
		.unattributed_count = unattributed_count,
		.accounts = account_rows.nr,
		.clients = client_rows.nr,
	};
	event_counts_locked(&totals->events);
	raw_spin_unlock_irq(&ledger_lock);
}

/**
 * ledger_init() - open the books
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int ledger_init(void)
{
	int err;

	ledger_work = alloc_workqueue("umacct", WQ_UNBOUND, 0);
	if (!ledger_work)
		return -ENOMEM;
	err = record_init();
	if (err)
		goto err_work;
	err = client_init();
	if (err)
		goto err_record;
	err = account_init();
	if (err)
		goto err_client;
	err = removal_init();
	if (err)
		goto err_account;
	err = account_make_root();
	if (err)
		goto err_removal;
	return 0;

err_removal:
	removal_exit();
err_account:
	account_exit();
err_client:
	client_exit();
err_record:
	record_exit();
err_work:
	destroy_workqueue(ledger_work);
	return err;
}

/**
 * ledger_exit() - close the books
 *
 * Context: module exit; every hook is disarmed and drained.
 */
void ledger_exit(void)
{
	ledger_drop(false);
	ledger_drop(true);
	removal_exit();
	event_exit();
	client_exit();
	account_exit();
	record_exit();
	destroy_workqueue(ledger_work);
	/* Clients are freed by a function of ours. */
	rcu_barrier();
}
