// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records: a live allocation each, found by the driver's handle; and what they come
 * to in the accounts of their branch and in their client.
 *
 * Records come from a stock of spare ones: cheaper than the slab allocator, and
 * there when that has nothing to give.
 */
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ledger/account.h"
#include "ledger/attribution.h"
#include "ledger/client.h"
#include "ledger/count.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/record.h"
#include "ledger/table.h"

/* An allocation is a page at least: sixteen of them at the most share a bucket. */
#define BYTES_PER_BUCKET	(16 * PAGE_SIZE)

/* Records that are dropped at a time: nobody waits longer for the lock. */
#define DROP_BATCH		64

/**
 * struct record - one live allocation
 * @hash: in the table, or among the spare ones
 * @key: the driver's handle
 * @bytes: what left the free list, and @metadata
 * @metadata: what the driver keeps because of it
 * @client: who made it; NULL for the driver itself and where no process did
 * @account: whom it counts for; NULL for the driver itself
 * @kind: what it is
 * @uvm: nvidia-uvm made it
 * @charged: the kernel's memory controller sees all but @metadata of it
 *
 * Holds a reference on @client, or on @account where there is no client.
 */
struct record {
	struct hlist_node hash;
	unsigned long key;
	u64 bytes;
	u64 metadata;
	struct client *client;
	struct account *account;
	enum allocation_kind kind;
	bool uvm;
	bool charged;
};

struct record_totals record_totals;

static struct kmem_cache *record_cache;
static struct table record_table;

/* Guarded by ledger_lock. */
static HLIST_HEAD(spares);
u32 record_spares;

static struct record *find_in(struct hlist_head *in, unsigned long key)
{
	struct record *record;

	hlist_for_each_entry(record, in, hash)
		if (record->key == key)
			return record;
	return NULL;
}

static struct record *spare_take_locked(void)
{
	struct record *record;

	lockdep_assert_held(&ledger_lock);
	if (unlikely(hlist_empty(&spares)))
		return NULL;
	record = hlist_entry(spares.first, struct record, hash);
	__hlist_del(&record->hash);
	WRITE_ONCE(record_spares, record_spares - 1);
	return record;
}

static void spare_put_locked(struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	hlist_add_head(&record->hash, &spares);
	WRITE_ONCE(record_spares, record_spares + 1);
}

static struct record *record_alloc(void)
{
	return kmem_cache_alloc(record_cache, GFP_KERNEL | __GFP_NOWARN);
}

/**
 * record_fill_spares() - have some spare records; see record_refill()
 *
 * Context: may sleep; ledger_lock not held.
 */
void record_fill_spares(void)
{
	while (READ_ONCE(record_spares) < RECORD_SPARES_HIGH) {
		struct record *record = record_alloc();

		if (!record)
			return;
		raw_spin_lock_irq(&ledger_lock);
		spare_put_locked(record);
		raw_spin_unlock_irq(&ledger_lock);
	}
}

/**
 * record_trim_spares() - what many frees left is too much; see record_trim()
 *
 * Takes as many as are too much, but no more than are dropped at a time.
 *
 * Context: any but an interrupt or NMI; ledger_lock not held.
 */
void record_trim_spares(void)
{
	struct hlist_node *next;
	struct record *record;
	unsigned int taken = 0;
	unsigned long flags;
	HLIST_HEAD(extra);

	raw_spin_lock_irqsave(&ledger_lock, flags);
	while (record_spares > RECORD_SPARES_HIGH && taken++ < DROP_BATCH)
		hlist_add_head(&spare_take_locked()->hash, &extra);
	raw_spin_unlock_irqrestore(&ledger_lock, flags);
	hlist_for_each_entry_safe(record, next, &extra, hash)
		kmem_cache_free(record_cache, record);
}

/* What a record adds to CHARGED. */
static u64 charged_bytes(const struct record *record)
{
	return record->charged ? record->bytes - record->metadata : 0;
}

static noinline void add_charged_locked(const struct record *record)
{
	struct account *account = account_nearest_online(record->account);

	lockdep_assert_held(&ledger_lock);
	for (; account; account = account->parent)
		account->charged += charged_bytes(record);
}

static noinline void remove_special_locked(const struct record *record)
{
	struct account *account = account_nearest_online(record->account);

	lockdep_assert_held(&ledger_lock);
	if (record->kind == ALLOCATION_MANAGED)
		limit_add_managed_locked(account, -record->bytes);
	if (record->charged)
		for (; account; account = account->parent)
			count_sub(&account->charged, charged_bytes(record));
}

static __always_inline void uncharge_locked(const struct record *record)
{
	struct account *account = account_nearest_online(record->account);
	const u64 bytes = record->bytes, metadata = record->metadata;
	const bool system = record->kind == ALLOCATION_SYSTEM;

	lockdep_assert_held(&ledger_lock);
	if (unlikely(record->charged || record->kind == ALLOCATION_MANAGED))
		remove_special_locked(record);
	count_sub(&account->local, bytes);
	for (; account; account = account->parent) {
		count_sub(&account->usage, bytes);
		account->metadata -= metadata;
		account->frees += system;
		if (unlikely(account->over_soft))
			limit_check_soft_locked(account, bytes);
	}
}

static void client_add_record_locked(struct client *client, const struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	client->records++;
	/* Another thread may be changing it: some of both names then, and an end. */
	data_race(memcpy(client->comm, current->comm, TASK_COMM_LEN));
	client->allocs += record->kind == ALLOCATION_SYSTEM;
	client->usage += record->bytes;
	client->metadata += record->metadata;
	if (unlikely(record->kind == ALLOCATION_MANAGED))
		client->managed += record->bytes;
	if (unlikely(record->charged))
		client->charged += charged_bytes(record);
	client->peak = max(client->peak, client->usage);
}

static __always_inline void client_remove_record_locked(struct client *client,
							const struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	client->frees += record->kind == ALLOCATION_SYSTEM;
	count_sub(&client->usage, record->bytes);
	client->metadata -= record->metadata;
	if (unlikely(record->kind == ALLOCATION_MANAGED))
		count_sub(&client->managed, record->bytes);
	if (unlikely(record->charged))
		count_sub(&client->charged, charged_bytes(record));
	if (--client->records)
		return;
	/* The usual end: a process that exits closes the driver. This record refers to it. */
	if (client->refs == 2 &&
	    (client_exited(client) || !client->account->online ||
	     ((current->flags & PF_EXITING) && client->pid == task_tgid(current))))
		client_unlist_locked(client);
}

static __always_inline struct record *take_locked(unsigned long key)
{
	struct record *record = find_in(table_bucket(&record_table, key), key);

	lockdep_assert_held(&ledger_lock);
	if (likely(record))
		__hlist_del(&record->hash);
	return record;
}

/* It becomes a spare one. */
static __always_inline u64 settle_locked(struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	record_totals.nr--;
	if (likely(record->kind != ALLOCATION_DRIVER))
		uncharge_locked(record);
	else
		count_sub(&record_totals.driver_usage, record->bytes);
	if (record->client)
		client_remove_record_locked(record->client, record);
	attribution_put_locked(record->account, record->client);
	spare_put_locked(record);
	return record->bytes - record->metadata;
}

/**
 * record_take_locked() - take a record out of the table, so that its handle may be another's
 * @key: the driver's handle
 *
 * What it is stays counted. record_settle_locked() must follow, or record_put_back_locked().
 *
 * Context: ledger_lock held.
 * Return: the record, or NULL if the handle is not known.
 */
struct record *record_take_locked(unsigned long key)
{
	return take_locked(key);
}

/**
 * record_put_back_locked() - undo record_take_locked()
 * @record: the record; nobody else has got its handle meanwhile
 *
 * Context: ledger_lock held.
 */
void record_put_back_locked(struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	hlist_add_head(&record->hash, table_bucket(&record_table, record->key));
}

/**
 * record_settle_locked() - what a record is of is gone
 * @record: from record_take_locked(); becomes a spare one
 *
 * Context: ledger_lock held. event_kick() must follow.
 * Return: the bytes of the pages that it was.
 */
u64 record_settle_locked(struct record *record)
{
	return settle_locked(record);
}

static void erase_locked(struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	__hlist_del(&record->hash);
	record_settle_locked(record);
}

/**
 * record_reserve_locked() - put a record aside for an allocation
 * @alloc: the allocation; gets it
 *
 * Many tasks at once may have taken the spare ones since they were looked at last. Then the
 * slab allocator is asked.
 *
 * Context: process context, may sleep. ledger_lock is held, and may be given up meanwhile.
 * Return: false if there is no memory for one.
 */
bool record_reserve_locked(struct allocation *alloc)
{
	alloc->record = spare_take_locked();
	if (unlikely(!alloc->record)) {
		raw_spin_unlock_irq(&ledger_lock);
		alloc->record = record_alloc();
		raw_spin_lock_irq(&ledger_lock);
	}
	return alloc->record;
}

/**
 * record_unreserve_locked() - it is not needed
 * @alloc: the allocation
 *
 * Context: ledger_lock held.
 */
void record_unreserve_locked(struct allocation *alloc)
{
	if (alloc->record)
		spare_put_locked(alloc->record);
	alloc->record = NULL;
}

static noinline void erase_stale_locked(struct record *record)
{
	lockdep_assert_held(&ledger_lock);
	erase_locked(record);
	record_totals.stale_count++;
}

static noinline void untracked_locked(const struct allocation *alloc)
{
	lockdep_assert_held(&ledger_lock);
	record_totals.untracked += alloc->bytes;
	record_totals.untracked_count++;
	attribution_put_locked(alloc->account, alloc->client);
}

/**
 * record_insert_locked() - the driver has allocated
 * @alloc: attributed; its references pass to the record, and its penalty is set
 * @key: the driver's handle
 * @charged: the kernel's memory controller was charged
 *
 * What can't be recorded is counted as untracked.
 *
 * Context: ledger_lock held. event_kick() must follow.
 */
void record_insert_locked(struct allocation *alloc, unsigned long key, bool charged)
{
	struct hlist_head *in = table_bucket(&record_table, key);
	struct record *record, *stale;

	lockdep_assert_held(&ledger_lock);
	if (!alloc->record && (alloc->account || alloc->kind == ALLOCATION_DRIVER))
		alloc->record = spare_take_locked();
	record = alloc->record;
	if (unlikely(!record)) {
		untracked_locked(alloc);
		return;
	}
	/* A handle that is handed out again was freed unseen. */
	stale = find_in(in, key);
	if (unlikely(stale))
		erase_stale_locked(stale);
	record->key = key;
	record->bytes = alloc->bytes;
	record->metadata = alloc->metadata;
	record->client = alloc->client;
	record->account = alloc->account;
	record->kind = alloc->kind;
	record->uvm = alloc->uvm;
	record->charged = charged;
	hlist_add_head(&record->hash, in);
	record_totals.nr++;
	if (record->client)
		client_add_record_locked(record->client, record);
	if (likely(record->kind != ALLOCATION_DRIVER)) {
		if (!alloc->counted)
			limit_charge_locked(alloc);
		if (unlikely(charged))
			add_charged_locked(record);
	} else {
		record_totals.driver_usage += record->bytes;
		record_totals.driver_peak = max(record_totals.driver_peak,
						record_totals.driver_usage);
	}
}

/**
 * record_erase_locked() - the driver has freed
 * @key: its handle; one that was never recorded is ignored
 *
 * Context: ledger_lock held. event_kick() must follow.
 * Return: the bytes of the pages that it was, or 0.
 */
u64 record_erase_locked(unsigned long key)
{
	struct record *record = take_locked(key);

	return likely(record) ? settle_locked(record) : 0;
}

/* Returns how many were dropped; fewer than DROP_BATCH when the bucket has no more. */
static unsigned int drop_some(struct hlist_head *in, bool uvm)
{
	struct hlist_node *next;
	struct record *record;
	unsigned int dropped = 0;

	raw_spin_lock_irq(&ledger_lock);
	hlist_for_each_entry_safe(record, next, in, hash) {
		if (record->uvm != uvm)
			continue;
		erase_locked(record);
		if (++dropped == DROP_BATCH)
			break;
	}
	raw_spin_unlock_irq(&ledger_lock);
	return dropped;
}

/**
 * record_drop() - forget the records of a driver that is gone
 * @uvm: nvidia-uvm's, otherwise nvidia's
 *
 * Context: may sleep; no hook of that driver is armed. event_kick() must follow.
 * Return: how many there were.
 */
u64 record_drop(bool uvm)
{
	u64 dropped = 0;
	unsigned int i, some;

	for (i = 0; i < table_buckets(&record_table); i++) {
		if (hlist_empty(&record_table.heads[i]))
			continue;
		do {
			some = drop_some(&record_table.heads[i], uvm);
			dropped += some;
			record_trim_spares();
			cond_resched();
		} while (some == DROP_BATCH);
	}
	return dropped;
}

/**
 * record_init() - make the table and the stock
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int record_init(void)
{
	int err = table_init(&record_table, BYTES_PER_BUCKET);

	if (err)
		return err;
	/* A second copy has another name: it is refused later, and not warned about here. */
	record_cache = kmem_cache_create(THIS_MODULE->name, sizeof(struct record),
					 __alignof__(struct record), 0, NULL);
	if (!record_cache) {
		table_exit(&record_table);
		return -ENOMEM;
	}
	record_fill_spares();
	return 0;
}

/**
 * record_exit() - undo record_init(); there are no records any more
 *
 * Context: module exit.
 */
void record_exit(void)
{
	struct record *record;

	do {
		raw_spin_lock_irq(&ledger_lock);
		record = spare_take_locked();
		raw_spin_unlock_irq(&ledger_lock);
		if (record)
			kmem_cache_free(record_cache, record);
	} while (record);
	kmem_cache_destroy(record_cache);
	table_exit(&record_table);
}
