// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reserve, and guarantees: what an allocation has to leave, of what is available.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/vmstat.h>

#include "ledger/account.h"
#include "ledger/available.h"
#include "ledger/reserve.h"
#include "ledger/settings.h"

/*
 * Bytes that the driver is allocating just now, where there is a reserve; and how many ever
 * were, and no longer are: an allocation that looked at the memory before still saw it as free.
 */
static atomic64_t reserve_pending;
static atomic64_t reserve_settled;

/*
 * Each processor keeps pages that were freed there. They are free, MemAvailable leaves them
 * out, and on a machine whose memory is all in use they are a large part of what a server has
 * just given back.
 */
static u64 free_in_lists(void)
{
	unsigned long pages = 0;
	struct zone *zone;
	int nid, i, cpu;

	for_each_online_node(nid) {
		for (i = 0; i < MAX_NR_ZONES; i++) {
			zone = &NODE_DATA(nid)->node_zones[i];
			if (!populated_zone(zone))
				continue;
			for_each_online_cpu(cpu)
				pages += READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
		}
	}
	return (u64)pages << PAGE_SHIFT;
}

/**
 * umacct_reserve_room() - what is there for an allocation, where there is a reserve
 *
 * Context: may sleep; umacct_ledger_lock not held.
 */
struct reserve_room umacct_reserve_room(void)
{
	struct reserve_room room = {
		.must_leave = READ_ONCE(umacct_settings.must_leave),
		.reserve = READ_ONCE(umacct_settings.reserve),
	};

	if (!room.must_leave)
		return room;
	room.settled = atomic64_read(&reserve_settled);
	/* What settles from here on is taken for gone, whether or not it is seen as free. */
	smp_rmb();
	room.available = available_now();
	if (unlikely(READ_ONCE(umacct_settings.guarantees)) &&
	    room.available <= umacct_reserve_kept_from(NULL))
		room.in_lists = free_in_lists();
	return room;
}

static bool leaves_reserve(u64 pending, u64 available, struct reserve_room *room)
{
	u64 settled;

	/*
	 * Pairs with the barrier in umacct_reserve_settle(): what passes from what is pending
	 * to what is settled is counted twice, not never.
	 */
	smp_rmb();
	settled = atomic64_read(&reserve_settled) - room->settled;
	if (pending + settled + room->leave <= available)
		return true;
	room->outdated = settled;
	return false;
}

static u64 unused(const struct account *account)
{
	u64 keep = READ_ONCE(account->settings.keep);

	return keep - min(keep, account_usage(account));
}

/* The account whose guarantee covers another, which may be itself: guarantees don't nest. */
static const struct account *covering(const struct account *account)
{
	while (account && !READ_ONCE(account->settings.keep))
		account = READ_ONCE(account->parent);
	return account;
}

/**
 * umacct_reserve_kept_from() - what guarantees keep of what is available
 * @account: its own guarantee, or that of an account above it, is left out; NULL: all count
 *
 * Of memory that was just freed for a guarantee, the part whose free is still under way is
 * not kept yet.
 *
 * Context: umacct_ledger_lock held, an RCU reader, or a reference to @account.
 * Return: bytes.
 */
u64 umacct_reserve_kept_from(const struct account *account)
{
	const struct account *own, *at;
	unsigned int i;
	u64 kept = 0;

	if (likely(!READ_ONCE(umacct_settings.guarantees)))
		return 0;
	rcu_read_lock();
	own = covering(account);
	for (i = 0; i < ACCOUNT_GUARANTEES_MAX; i++) {
		at = rcu_dereference(umacct_account_guarantees[i]);
		if (at && at != own)
			kept += unused(at);
	}
	rcu_read_unlock();
	return kept;
}

/* Is an account within its guarantee? Its usage has the request already. */
static bool is_within_guarantee(const struct account *account)
{
	const struct account *own;
	bool within;

	if (likely(!READ_ONCE(umacct_settings.guarantees)))
		return false;
	rcu_read_lock();
	own = covering(account);
	within = own && account_usage(own) <= READ_ONCE(own->settings.keep);
	rcu_read_unlock();
	return within;
}

/**
 * umacct_reserve_take() - take of what is above the reserve and the guarantees of others
 * @account: whose it is to be; it is part of its usage already
 * @bytes: how much
 * @room: from umacct_reserve_room(), a moment ago
 *
 * What is within its own guarantee has only to be there, if only in the processors' lists.
 *
 * Context: any.
 * Return: true if it is there: it counts as pending until umacct_reserve_settle().
 */
bool umacct_reserve_take(struct account *account, u64 bytes, struct reserve_room *room)
{
	u64 available = room->available;

	room->outdated = false;
	if (is_within_guarantee(account)) {
		room->leave = 0;
		available += room->in_lists;
	} else {
		room->leave = room->reserve + umacct_reserve_kept_from(account);
	}
	/* A request that cannot succeed must not make others fail, not even for a moment. */
	if (bytes > available ||
	    !leaves_reserve(atomic64_read(&reserve_pending) + bytes, available, room))
		return false;
	if (leaves_reserve(atomic64_add_return(bytes, &reserve_pending), available, room))
		return true;
	atomic64_sub(bytes, &reserve_pending);
	return false;
}

/**
 * umacct_reserve_settle() - the driver has what was pending for the reserve, or won't take it
 * @bytes: how much it was
 *
 * Context: any.
 */
void umacct_reserve_settle(u64 bytes)
{
	atomic64_add(bytes, &reserve_settled);
	/* Pairs with the barrier in leaves_reserve(). */
	smp_mb__after_atomic();
	atomic64_sub(bytes, &reserve_pending);
}
