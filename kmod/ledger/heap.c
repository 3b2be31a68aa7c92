// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drivers' heaps: see client.h.
 *
 * What is taken is added to the client's number, and looked at then: where the lots have room for it,
 * that is all. What gives lots back takes them off first, and looks at the number then. So of both one
 * at least sees the other.
 */
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/random.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/client.h"
#include "ledger/limit.h"
#include "memcg.h"

u64 umacct_heap_seal;

/* No size of the driver's is as large as a number with the highest bit. */
static u64 new_seal(void)
{
	return (get_random_u64() | BIT_ULL(63)) >> HEAP_SEAL_SHIFT;
}

/* A lot is taken where there is room for it; it is no refusal if there isn't. */
static bool count_lot_locked(struct allocation *alloc, struct reserve_room *room)
{
	if (limit_add_locked(alloc->account, alloc->bytes))
		return false;
	alloc->pending_reserve = room->must_leave;
	if (!room->must_leave || umacct_reserve_take(alloc->account, alloc->bytes, room))
		return alloc->counted = true;
	umacct_limit_sub_locked(alloc->account, alloc->bytes);
	return false;
}

/*
 * Makes room, which others may take first. @charged: what the memory controller was charged.
 * @pending: see umacct_heap_take_for().
 */
static bool count_locked(struct client *client, u64 bytes, bool is_lot, u64 charged,
			 struct reserve_room *room, struct shortage *why, u64 *pending)
{
	struct allocation alloc = {
		.kind = ALLOCATION_METADATA,
		.bytes = bytes,
		.account = client->account,
		.client = client,
	};

	lockdep_assert_held(&umacct_ledger_lock);
	if (is_lot ? !count_lot_locked(&alloc, room) : !limit_begin_locked(&alloc, room)) {
		*why = alloc.shortage;
		return false;
	}
	if (pending && alloc.pending_reserve)
		*pending += bytes;
	else
		limit_end_locked(&alloc);
	alloc.metadata = bytes;
	limit_book_locked(&alloc);
	client_name(client);
	client->booked += bytes;
	client->metadata += bytes;
	client->heap.charged += charged;
	peak_raise(&client->peak, client->booked + managed_bytes(&client->managed));
	if (!client->heap.room)
		atomic_inc(&client->refs);
	WRITE_ONCE(client->heap.room, client->heap.room + bytes);
	return true;
}

/* The objcg that is to pay for a client's heap, or NULL. That of a client doesn't change. */
static struct obj_cgroup *objcg_of(struct client *client)
{
	struct obj_cgroup *objcg;
	unsigned long flags;
	bool charges;

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	account_update_locked(client->account);
	charges = client->account->charge_effective;
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	if (!charges)
		return NULL;
	if (!READ_ONCE(client->heap.objcg)) {
		objcg = umacct_memcg_get_objcg();
		if (objcg && cmpxchg(&client->heap.objcg, NULL, objcg))
			obj_cgroup_put(objcg);
	}
	return READ_ONCE(client->heap.objcg);
}

/* Return: false if the memory controller, a limit or the reserve forbids it. */
static bool grow(struct client *client, u64 bytes, bool is_lot, bool may_sleep,
		 struct shortage *why, u64 *pending)
{
	struct obj_cgroup *objcg = objcg_of(client);
	struct reserve_room room = { .last = true };
	unsigned int look = 0;
	unsigned long flags;
	bool grown;

	if (objcg && !umacct_memcg_charge(objcg, bytes, may_sleep))
		return false;
	do {
		if (may_sleep) {
			room = umacct_reserve_room();
			room.last = ++look == RESERVE_LOOKS;
		}
		raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
		grown = count_locked(client, bytes, is_lot, objcg ? bytes : 0, &room, why,
				     pending);
		raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	} while (!grown && room.outdated && !room.last);
	event_kick();
	if (objcg && !grown)
		umacct_memcg_uncharge(objcg, bytes);
	return grown;
}

/*
 * umacct_heap_take() for a client, on which the caller has a reference. Returns false if a limit,
 * the reserve or the memory controller forbids it. @pending: grows by the bytes that stay pending
 * for the reserve, which the caller settles; NULL, for what is small: none do.
 */
bool umacct_heap_take_for(struct client *client, u64 bytes, bool may_sleep, struct shortage *why,
			  u64 *pending)
{
	while (!heap_take_of(client, bytes)) {
		if (!grow(client, round_up(bytes, HEAP_LOT), true, may_sleep, why, pending) &&
		    !grow(client, PAGE_ALIGN(bytes), false, may_sleep, why, pending)) {
			/* Another may have given back the last meanwhile, and seen what was tried here. */
			if (heap_give_of(client, 0))
				umacct_heap_trim(client);
			return false;
		}
	}
	return true;
}

/**
 * umacct_heap_take() - a driver's heap is about to be asked for memory, by the current task
 * @bytes: how much
 * @uvm: nvidia-uvm's
 * @may_sleep: the caller may; otherwise, a process's first allocation has no owner
 * @why: set where a limit or the reserve forbids it
 *
 * If this returns an owner, heap_give() must follow one day.
 *
 * Context: task context, of a task that works for a process.
 * Return: whose it is, for heap_mark(); 0 if that isn't known; less than 0 if a limit, the reserve or
 *	the memory controller forbids it.
 */
int umacct_heap_take(u64 bytes, bool uvm, bool may_sleep, struct shortage *why)
{
	struct allocation alloc = { .uvm = uvm };
	struct client *client;
	int owner = -ENOMEM;

	preempt_disable();
	client = client_get(task_tgid(current), cgroup_id(attribution_cgroup(uvm)));
	preempt_enable();
	if (!client && !may_sleep)
		return READ_ONCE(umacct_settings.precheck_enabled) ? -ENOMEM : 0;
	if (!client) {
		umacct_attribution_make(&alloc);
		client = alloc.client;
	}
	if (!client) {
		if (umacct_refusal_unattributed())
			return -ENOMEM;
		umacct_untracked(bytes);
		return 0;
	}
	if (umacct_heap_take_for(client, bytes, may_sleep, why, NULL))
		owner = client->number;
	client_put(client);
	return owner;
}

/*
 * Gives back the unneeded part of the lots. Return: how much of it was charged to the memory
 * controller. The client may be gone afterwards, but for its memory.
 */
static u64 trim_locked(struct client *client)
{
	struct account *at = account_nearest_online(client->account);
	const s64 room = client->heap.room, bytes = held_count(&client->heap.bytes);
	const s64 keep = min(room, round_up(bytes, HEAP_LOT));
	u64 charged;

	lockdep_assert_held(&umacct_ledger_lock);
	WRITE_ONCE(client->heap.room, keep);
	/* Pairs with the addition in heap_take_of(). */
	smp_mb();
	if (keep == room || atomic64_read(&client->heap.bytes) > keep) {
		WRITE_ONCE(client->heap.room, room);
		return 0;
	}
	charged = min_t(u64, client->heap.charged, room - keep);
	client->heap.charged -= charged;
	umacct_limit_sub_locked(client->account, room - keep);
	count_sub(&at->booked_local, (u64)(room - keep));
	for (; at; at = at->parent)
		at->metadata -= room - keep;
	count_sub(&client->booked, (u64)(room - keep));
	client->metadata -= room - keep;
	if (!keep && atomic_dec_return(&client->refs) == 1 && client_is_ending(client))
		umacct_client_unlist_idle_locked(client);
	return charged;
}

/* Gives back what isn't needed of a client's lots. For RCU readers; not in NMIs. */
void umacct_heap_trim(struct client *client)
{
	const s64 left = atomic64_read(&client->heap.bytes);
	unsigned long flags;
	u64 charged;

	/* Forgotten memory can still be freed. */
	if (unlikely(left < 0))
		atomic64_cmpxchg(&client->heap.bytes, left, 0);
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	charged = trim_locked(client);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	event_kick();
	if (charged)
		umacct_memcg_uncharge(client->heap.objcg, charged);
}

/*
 * A driver is gone, or isn't followed any more; if it is nvidia.ko, nothing is held any more. May
 * sleep.
 */
void umacct_heap_drop(bool all)
{
	struct client *client;
	u32 number;

	if (all)
		WRITE_ONCE(umacct_heap_seal, new_seal());
	for (number = 0; number < CLIENT_NUMBERS; number++) {
		if (!rcu_access_pointer(umacct_clients[number]))
			continue;
		rcu_read_lock();
		client = rcu_dereference(umacct_clients[number]);
		if (client) {
			if (all)
				atomic64_set(&client->heap.bytes, 0);
			umacct_heap_trim(client);
		}
		rcu_read_unlock();
		cond_resched();
	}
}

/* Chooses the bits that distinguish marks from other contents. */
void umacct_heap_init(void)
{
	umacct_heap_seal = new_seal();
}
