// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refusals: counted, and told as one event. The driver tries a refused allocation again in smaller
 * pages, from the same thread: that is the same refusal.
 */
#include <linux/mm.h>
#include <linux/sched.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/lock.h"
#include "ledger/refusal.h"
#include "ledger/reserve.h"

u64 umacct_refusal_reserve_count;
u64 umacct_refusal_unattributed_count;

static bool refused_before(struct client *client, const struct allocation *alloc)
{
	u32 block = alloc->page_size >> PAGE_SHIFT;
	bool again;

	if (!client)
		return false;
	again = client->refused_tid == current->pid &&
		client->refused_after == lower_32_bits(client->allocs) &&
		client->refused_pages == alloc->pages &&
		client->refused_block > block;
	client->refused_tid = current->pid;
	client->refused_after = lower_32_bits(client->allocs);
	client->refused_pages = alloc->pages;
	client->refused_block = block;
	return again;
}

static void count_refusal(struct account *account)
{
	for (; account; account = account->parent)
		account->refusals++;
}

/**
 * umacct_refuse_hard_locked() - a hard limit forbids an allocation
 * @alloc: the allocation
 * @limiting: the account whose limit it is
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_refuse_hard_locked(struct allocation *alloc, struct account *limiting)
{
	lockdep_assert_held(&umacct_ledger_lock);
	if (refused_before(alloc->client, alloc))
		return;
	count_refusal(alloc->account);
	limiting->hard_count++;
	umacct_event_post_locked(UMACCT_EVENT_HARD_REFUSED, alloc->account, limiting,
				 alloc->bytes, account_usage(limiting), limiting->settings.hard);
}

/**
 * umacct_refuse_reserve_locked() - the reserve forbids an allocation
 * @alloc: the allocation
 * @room: what there was for it
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_refuse_reserve_locked(struct allocation *alloc, const struct reserve_room *room)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	if (refused_before(alloc->client, alloc))
		return;
	count_refusal(alloc->account);
	for (account = alloc->account; account; account = account->parent)
		account->reserve_count++;
	umacct_refusal_reserve_count++;
	umacct_event_post_locked(UMACCT_EVENT_RESERVE_REFUSED, alloc->account, NULL,
				 alloc->bytes, room->available, room->leave);
}

/**
 * umacct_refuse_impossible_locked() - a request is for more than the machine's memory
 * @alloc: the allocation, which is in no usage
 *
 * Where a hard limit forbids it, too, it is refused for that.
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 */
void umacct_refuse_impossible_locked(struct allocation *alloc)
{
	struct account *at;

	lockdep_assert_held(&umacct_ledger_lock);
	for (at = account_nearest_online(alloc->account); at; at = at->parent) {
		if (alloc->bytes > at->settings.hard) {
			umacct_refuse_hard_locked(alloc, at);
			return;
		}
	}
}
