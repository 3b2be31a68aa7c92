// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger's books: an allocation begins, ends, and is freed one day. See
 * ledger.h for what is kept, lock.h for how it is guarded.
 */
#include "ledger/account.h"
#include "ledger/attribution.h"
#include "ledger/available.h"
#include "ledger/chunk.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/record.h"
#include "ledger/refusal.h"
#include "ledger/removal.h"
#include "ledger/reserve.h"
#include "ledger/settings.h"
#include "ledger/work.h"

static __always_inline bool precheck(struct allocation *alloc, struct reserve_room *room)
{
	bool allowed = false;

	record_refill();
	raw_spin_lock_irq(&umacct_ledger_lock);
	attribution_find_locked(alloc);
	if (unlikely(!alloc->account || !umacct_record_set_aside_locked(alloc)))
		umacct_refusal_unattributed_count++;
	else
		allowed = limit_begin_locked(alloc, room);
	if (!allowed) {
		umacct_record_give_back_locked(alloc);
		attribution_put(alloc->account, alloc->client);
		/* Another look finds out anew whose it is. */
		alloc->account = NULL;
		alloc->client = NULL;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	if (!allowed)
		event_kick();
	return allowed;
}

/*
 * How often at most an allocation looks at the available memory: while a task was kept from the
 * processor, so much may have come and gone that its first look is outdated.
 */
#define LOOKS	4

/* Out of line: without a reserve, limits do not pay for it. */
static noinline bool precheck_reserve(struct allocation *alloc)
{
	struct reserve_room room;
	unsigned int look = 0;

	do {
		room = umacct_reserve_room();
		room.last = ++look == LOOKS;
		if (precheck(alloc, &room))
			return true;
	} while (room.outdated && !room.last);
	return false;
}

/**
 * umacct_ledger_refuse_impossible() - refuse a request for more than the machine's memory
 * @alloc: what the caller fills in, the rest zero
 *
 * Context: process context, may sleep; the driver's locks are held.
 */
void umacct_ledger_refuse_impossible(struct allocation *alloc)
{
	attribution_lock(alloc);
	if (alloc->account) {
		umacct_refuse_impossible_locked(alloc);
		attribution_put(alloc->account, alloc->client);
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
}

/**
 * umacct_ledger_precheck() - ledger_begin(), where limits, a reserve or charging may apply
 * @alloc: the allocation
 *
 * What can't be put on an account or can't be recorded, for want of memory, could
 * escape them: it is refused.
 *
 * Context: process context, may sleep; the driver's locks are held.
 * Return: false if a limit forbids it.
 */
bool umacct_ledger_precheck(struct allocation *alloc)
{
	if (unlikely(READ_ONCE(umacct_settings.must_leave)))
		return precheck_reserve(alloc);
	return precheck(alloc, NULL);
}

/**
 * umacct_ledger_tell_failure() - the driver had no memory for a request of the current task
 * @account_id: whose it was
 * @bytes: what it would have taken
 * @available: what was available then
 *
 * If the account is gone, no listener could be told.
 *
 * Context: process context; umacct_ledger_lock not held.
 */
void umacct_ledger_tell_failure(u64 account_id, u64 bytes, u64 available)
{
	struct account *account, *at;

	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_find_locked(account_id);
	if (account) {
		for (at = account; at; at = at->parent)
			at->failed++;
		umacct_event_post_locked(UMACCT_EVENT_FAILED, account, NULL, bytes, available, 0);
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
}

/**
 * umacct_ledger_count_wait() - a task has waited for being above a soft limit
 * @account_id: whose limit it is
 * @ns: how long
 *
 * Context: process context; umacct_ledger_lock not held.
 */
void umacct_ledger_count_wait(u64 account_id, u64 ns)
{
	struct account *account;

	raw_spin_lock_irq(&umacct_ledger_lock);
	for (account = umacct_account_find_locked(account_id); account; account = account->parent)
		account->throttled_ns += ns;
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/**
 * umacct_ledger_take() - the driver is about to give memory back, and the handle with it
 * @key: its handle
 *
 * What it was stays in its account until it is really gone: umacct_ledger_settle() must follow,
 * or umacct_ledger_put_back(). The handle may be another allocation's meanwhile.
 *
 * Context: any but an interrupt or NMI.
 * Return: the record, or NULL if the handle is not known.
 */
struct record *umacct_ledger_take(unsigned long key)
{
	struct record *record;
	unsigned long flags;

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	record = umacct_record_take_locked(key);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	return record;
}

/**
 * umacct_ledger_put_back() - the driver has not given the memory back
 * @record: from umacct_ledger_take(), or NULL
 *
 * Context: any but an interrupt or NMI.
 */
void umacct_ledger_put_back(struct record *record)
{
	unsigned long flags;

	if (!record)
		return;
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	umacct_record_put_back_locked(record);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
}

/**
 * umacct_ledger_settle() - the driver has given the memory back
 * @record: from umacct_ledger_take(), or NULL
 *
 * Context: any but an interrupt or NMI.
 * Return: the bytes of the pages that it was, or 0.
 */
u64 umacct_ledger_settle(struct record *record)
{
	unsigned long flags;
	u64 bytes;

	if (!record)
		return 0;
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	bytes = umacct_record_settle_locked(record);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	record_trim();
	event_kick();
	return bytes;
}

/**
 * umacct_ledger_drop() - forget the records of a driver that is gone
 * @uvm: nvidia-uvm's, otherwise nvidia's
 *
 * Context: may sleep; no hook of that driver is armed.
 * Return: how many there were.
 */
u64 umacct_ledger_drop(bool uvm)
{
	u64 dropped = umacct_record_drop(uvm);

	if (uvm)
		dropped += umacct_chunk_drop();
	event_kick();
	return dropped;
}

/**
 * umacct_ledger_refresh() - see to it that what is gone is not shown
 *
 * Context: may sleep; umacct_ledger_lock not held.
 */
void umacct_ledger_refresh(void)
{
	umacct_removal_refresh();
}

/**
 * umacct_ledger_read_totals() - the ledger's sums
 * @totals: filled in
 *
 * Context: umacct_ledger_lock not held.
 */
void umacct_ledger_read_totals(struct ledger_totals *totals)
{
	struct held held;

	raw_spin_lock_irq(&umacct_ledger_lock);
	umacct_account_held_locked(umacct_account_root, &held);
	*totals = (struct ledger_totals) {
		.usage = held.usage,
		.charged = held.charged,
		.managed = held.managed,
		.metadata = umacct_account_root->metadata,
		.records = umacct_record_totals,
		.settings = umacct_settings,
		.reserve_count = umacct_refusal_reserve_count,
		.unattributed_count = umacct_refusal_unattributed_count,
		.accounts = umacct_account_rows.nr,
		.clients = umacct_client_rows.nr,
	};
	totals->records.nr += umacct_chunk_count();
	umacct_event_counts_locked(&totals->events);
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/**
 * umacct_ledger_init() - open the books
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int umacct_ledger_init(void)
{
	int err;

	umacct_ledger_work = alloc_workqueue("umacct", WQ_UNBOUND, 0);
	if (!umacct_ledger_work)
		return -ENOMEM;
	umacct_available_init();
	err = umacct_record_init();
	if (err)
		goto err_work;
	err = umacct_chunk_init();
	if (err)
		goto err_record;
	err = umacct_client_init();
	if (err)
		goto err_chunk;
	err = umacct_account_init();
	if (err)
		goto err_client;
	err = umacct_removal_init();
	if (err)
		goto err_account;
	err = umacct_account_make_root();
	if (err)
		goto err_removal;
	return 0;

err_removal:
	umacct_removal_exit();
err_account:
	umacct_account_exit();
err_client:
	umacct_client_exit();
err_chunk:
	umacct_chunk_exit();
err_record:
	umacct_record_exit();
err_work:
	destroy_workqueue(umacct_ledger_work);
	return err;
}

/**
 * umacct_ledger_exit() - close the books
 *
 * Context: module exit; every hook is disarmed and drained.
 */
void umacct_ledger_exit(void)
{
	umacct_ledger_drop(false);
	umacct_ledger_drop(true);
	umacct_removal_exit();
	umacct_event_exit();
	umacct_client_exit();
	umacct_account_exit();
	umacct_chunk_exit();
	umacct_record_exit();
	destroy_workqueue(umacct_ledger_work);
	/* Clients are freed by a function of ours. */
	rcu_barrier();
}
