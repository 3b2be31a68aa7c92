// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger's books: an allocation begins, ends, and is freed one day. See
 * ledger.h for what is kept, base.h for how it is guarded.
 */
#include <linux/minmax.h>
#include <linux/mm.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/record.h"
#include "ledger/settings.h"

static __always_inline bool precheck(struct allocation *alloc, struct reserve_room *room)
{
	bool allowed = false;

	record_refill();
	raw_spin_lock_irq(&umacct_ledger_lock);
	attribution_find_locked(alloc);
	alloc->shortage.type = 0;
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

/* Out of line: without a reserve, limits do not pay for it. */
static noinline bool precheck_reserve(struct allocation *alloc)
{
	struct reserve_room room;
	unsigned int look = 0;

	do {
		room = umacct_reserve_room();
		room.last = ++look == RESERVE_LOOKS;
		if (precheck(alloc, &room))
			return true;
	} while (room.outdated && !room.last);
	return false;
}

/*
 * Refuses a request for more than the machine's memory; @alloc gets its shortage. May sleep; the
 * driver's locks are held.
 */
void umacct_ledger_refuse_impossible(struct allocation *alloc)
{
	alloc->shortage.type = 0;
	attribution_lock(alloc);
	if (alloc->account) {
		umacct_refusal_impossible_locked(alloc);
		attribution_put(alloc->account, alloc->client);
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
}

/*
 * ledger_begin(), where limits, a reserve or charging may apply. What can't be put on an account or
 * can't be recorded, for want of memory, could escape them: it is refused.
 */
bool umacct_ledger_precheck(struct allocation *alloc)
{
	if (unlikely(READ_ONCE(umacct_settings.must_leave)))
		return precheck_reserve(alloc);
	return precheck(alloc, NULL);
}

/* ledger_begin() for ALLOCATION_METADATA; becomes ALLOCATION_HEAP where it is a process's. */
bool umacct_ledger_begin_metadata(struct allocation *alloc)
{
	u64 pending = 0;
	bool allowed;

	if (!works_for_a_process())
		return ledger_begin(alloc);
	alloc->began = jiffies;
	raw_spin_lock_irq(&umacct_ledger_lock);
	attribution_find_locked(alloc);
	if (likely(alloc->client && umacct_record_set_aside_locked(alloc)))
		alloc->kind = ALLOCATION_HEAP;
	raw_spin_unlock_irq(&umacct_ledger_lock);
	if (likely(alloc->kind == ALLOCATION_HEAP))
		allowed = umacct_heap_take_for(alloc->client, alloc->bytes, true,
					       &alloc->shortage, &pending);
	else
		allowed = !READ_ONCE(umacct_settings.precheck_enabled);
	/* The driver takes the memory only now: until it has, others see that much less. */
	alloc->pending_reserve = allowed && pending && pending >= alloc->bytes;
	if (unlikely(pending))
		umacct_reserve_settle(pending - (alloc->pending_reserve ? alloc->bytes : 0));
	if (likely(allowed))
		return true;
	raw_spin_lock_irq(&umacct_ledger_lock);
	umacct_refusal_unattributed_count += alloc->kind != ALLOCATION_HEAP;
	umacct_record_give_back_locked(alloc);
	attribution_put(alloc->account, alloc->client);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return false;
}

/* A task has waited for being above a soft limit. */
void umacct_ledger_count_wait(u64 account_id, u64 ns)
{
	struct account *account;

	raw_spin_lock_irq(&umacct_ledger_lock);
	for (account = umacct_account_find_locked(account_id); account; account = account->parent)
		account->throttled_ns += ns;
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/*
 * Forgets the records of a driver, nvidia-uvm or nvidia; if it is @gone, and nvidia.ko, all of the
 * heaps, too. Returns how many records there were. May sleep.
 */
u64 umacct_ledger_drop(bool uvm, bool gone)
{
	u64 dropped = umacct_record_drop(uvm);

	if (uvm)
		dropped += umacct_chunk_drop();
	umacct_heap_drop(!uvm && gone);
	event_kick();
	return dropped;
}

/* Reads the ledger's sums. */
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
		.events = umacct_event_counts,
		.reserve_count = umacct_refusal_reserve_count,
		.unattributed_count = umacct_refusal_unattributed_count,
		.accounts = umacct_account_rows.nr,
		.clients = umacct_client_rows.nr,
	};
	totals->records.nr += umacct_chunk_count();
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/* Opens the books. */
int umacct_ledger_init(void)
{
	int err;

	umacct_ledger_work = alloc_workqueue("umacct", WQ_UNBOUND, 0);
	if (!umacct_ledger_work)
		return -ENOMEM;
	umacct_available_init();
	umacct_heap_init();
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

/* Closes the books, when every hook is disarmed and drained. */
void umacct_ledger_exit(void)
{
	umacct_ledger_drop(true, true);
	umacct_ledger_drop(false, true);
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

/* --- reading -------------------------------------------------------------- */

/* Reads an account: returns what @show does, which may not sleep, or -ENOENT. */
int umacct_read_account(u64 id, int (*show)(const struct account *account, void *arg), void *arg)
{
	struct account *account;
	int ret = -ENOENT;

	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_find_locked(id);
	if (account) {
		account_update_locked(account);
		ret = show(account, arg);
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return ret;
}

/*
 * Reads the next account behind @cursor, which is 0 for the first, and goes on if @show returns 0.
 * @generation is set to a number that changes when what an account holds becomes another's. Returns
 * 1; 0 if there is none left; what @show, which may not sleep, returns if that is less than 0.
 */
int umacct_read_next_account(u64 *cursor, unsigned int *generation,
			     int (*show)(const struct account *account, void *arg), void *arg)
{
	struct account *account;
	int ret = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	*generation = umacct_account_generation;
	account = umacct_account_after_locked(*cursor);
	if (account) {
		account_update_locked(account);
		ret = show(account, arg) ?: 1;
		if (ret > 0)
			*cursor = account->row.seq;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return ret;
}

/* The same of clients: @show gets the account that one counts for, too, and none that is over. */
int umacct_read_next_client(u64 *cursor,
			    int (*show)(const struct client *client,
					const struct account *account, void *arg), void *arg)
{
	struct client *client;
	int ret = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	client = umacct_client_after_locked(*cursor);
	if (client) {
		if (!umacct_client_is_over(client))
			ret = show(client, account_nearest_online(client->account), arg);
		ret = ret ?: 1;
		if (ret > 0)
			*cursor = client->row.seq;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return ret;
}

/* Reads what a cgroup could still have. For RCU readers. */
void umacct_read_bounds(struct cgroup *cgrp, struct account_bounds *bounds)
{
	struct account *account;

	bounds->view = false;
	bounds->left = UMACCT_UNLIMITED;
	raw_spin_lock_irq(&umacct_ledger_lock);
	account = umacct_account_nearest_locked(cgrp);
	account_update_locked(account);
	bounds->charged = account->charge_effective;
	bounds->effective = account->effective;
	bounds->reserve = umacct_settings.reserve + umacct_reserve_kept_from(account);
	for (; account; account = account->parent) {
		const u64 hard = account->settings.hard;

		bounds->view |= account->settings.view;
		if (hard != UMACCT_UNLIMITED)
			bounds->left = min(bounds->left,
					   hard - min(hard, account_usage(account)));
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/* --- settings ------------------------------------------------------------- */

/*
 * How an administrator changes the settings of an account: several at once, and all of them
 * or none.
 */

static bool is_above(const struct account *above, const struct account *account)
{
	while (account && account != above)
		account = account->parent;
	return account;
}

/* Is there as much as the reserve and all guarantees together? */
static int check_room_locked(u64 reserve, u64 guarantees, const char **why)
{
	const u64 most = (u64)totalram_pages() << PAGE_SHIFT;

	if (reserve <= most && guarantees <= most - reserve)
		return 0;
	*why = "the guarantees and the reserve would exceed the machine's memory";
	return -ENOSPC;
}

static int check_guarantee_locked(const struct account *account, u64 keep, const char **why)
{
	u64 sum = 0;
	const struct account *at;
	unsigned int i, others = 0;

	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		at = rcu_dereference_protected(umacct_account_guarantees[i],
					       lockdep_is_held(&umacct_ledger_lock));
		if (!at || at == account)
			continue;
		if (is_above(at, account) || is_above(account, at)) {
			*why = "guarantees do not nest, and a cgroup above or below has one";
			return -EINVAL;
		}
		sum += at->settings.keep;
		others++;
	}
	if (others == ACCOUNT_GUARANTEES_MAX) {
		*why = "64 cgroups have a guarantee, which is the maximum";
		return -ENOSPC;
	}
	/* They fit without it: no sum wraps. */
	return check_room_locked(umacct_settings.reserve, max(keep, sum + keep), why);
}

/**
 * umacct_settings_change() - change settings of an account
 * @account: the account
 * @change: what to change
 * @which: set to the setting that is refused
 * @why: set to a sentence if the change is refused
 *
 * Everything is changed, or nothing. Limits below the usage are taken.
 *
 * Context: umacct_ledger_lock not held.
 * Return: 0; -EINVAL if the soft limit would be above the hard one, or a guarantee within another;
 *	-ENOSPC if the machine can't keep all guarantees, -ENOENT if the cgroup was removed.
 */
int umacct_settings_change(struct account *account, const struct settings_change *change,
			   enum setting_id *which, const char **why)
{
	struct account_settings to;
	enum setting_id id;
	int err = 0;

	*which = SETTING_SOFT;
	raw_spin_lock_irq(&umacct_ledger_lock);
	if (!account->online) {
		*why = "the cgroup was just removed";
		err = -ENOENT;
		goto out;
	}
	to = account->settings;
	for (id = 0; id < NR_SETTINGS; id++)
		if (change->mask & BIT(id))
			to.values[id] = change->to.values[id];
	if (to.hard != UMACCT_UNLIMITED && to.soft != UMACCT_UNLIMITED && to.soft > to.hard) {
		*why = "the soft limit would be above the hard limit";
		err = -EINVAL;
		goto out;
	}
	if (to.keep > account->settings.keep) {
		*which = SETTING_KEEP;
		err = check_guarantee_locked(account, to.keep, why);
		if (err)
			goto out;
	}
	umacct_account_configure_locked(account, &to);
	umacct_limit_check_soft_locked(account, 0);
out:
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
	return err;
}

/*
 * Changes how much of what is available must be left, no more than the machine has. Returns 0, or
 * -ENOSPC and @why if the machine can't keep all guarantees beside it.
 */
int umacct_settings_change_reserve(u64 bytes, const char **why)
{
	const struct account *at;
	u64 guarantees = 0;
	unsigned int i;
	int err = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		at = rcu_dereference_protected(umacct_account_guarantees[i],
					       lockdep_is_held(&umacct_ledger_lock));
		if (at)
			guarantees += at->settings.keep;
	}
	if (bytes > umacct_settings.reserve)
		err = check_room_locked(bytes, guarantees, why);
	if (!err)
		umacct_settings_set_reserve_locked(bytes);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return err;
}
