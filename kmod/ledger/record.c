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
#include "ledger/hash_table.h"
#include "ledger/limit.h"
#include "ledger/lock.h"
#include "ledger/record.h"

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

struct record_totals umacct_record_totals;

static struct kmem_cache *record_cache;
static struct hash_table record_table;

/* Guarded by umacct_ledger_lock. */
static struct hlist_node *spares;
u32 umacct_record_spares;

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

	lockdep_assert_held(&umacct_ledger_lock);
	if (unlikely(!spares))
		return NULL;
	record = hlist_entry(spares, struct record, hash);
	spares = record->hash.next;
	WRITE_ONCE(umacct_record_spares, umacct_record_spares - 1);
	return record;
}

static void spare_put_locked(struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	record->hash.next = spares;
	spares = &record->hash;
	WRITE_ONCE(umacct_record_spares, umacct_record_spares + 1);
}

static struct record *record_alloc(void)
{
	return kmem_cache_alloc(record_cache, GFP_KERNEL | __GFP_NOWARN);
}

/**
 * umacct_record_fill_spares() - have some spare records; see record_refill()
 *
 * Context: may sleep; umacct_ledger_lock not held.
 */
void umacct_record_fill_spares(void)
{
	while (READ_ONCE(umacct_record_spares) < RECORD_SPARES_HIGH) {
		struct record *record = record_alloc();

		if (!record)
			return;
		raw_spin_lock_irq(&umacct_ledger_lock);
		spare_put_locked(record);
		raw_spin_unlock_irq(&umacct_ledger_lock);
	}
}

/**
 * umacct_record_trim_spares() - what many frees left is too much; see record_trim()
 *
 * Takes as many as are too much, but no more than are dropped at a time.
 *
 * Context: any but an interrupt or NMI; umacct_ledger_lock not held.
 */
void umacct_record_trim_spares(void)
{
	struct hlist_node *next;
	struct record *record;
	unsigned int taken = 0;
	unsigned long flags;
	HLIST_HEAD(extra);

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	while (umacct_record_spares > RECORD_SPARES_HIGH && taken++ < DROP_BATCH)
		hlist_add_head(&spare_take_locked()->hash, &extra);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
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

	lockdep_assert_held(&umacct_ledger_lock);
	for (; account; account = account->parent)
		account->booked_charged += charged_bytes(record);
}

static noinline void remove_charged_locked(const struct record *record)
{
	struct account *account = account_nearest_online(record->account);

	lockdep_assert_held(&umacct_ledger_lock);
	for (; account; account = account->parent)
		count_sub(&account->booked_charged, charged_bytes(record));
}

static __always_inline void uncharge_locked(const struct record *record)
{
	struct account *account = account_nearest_online(record->account);
	const u64 bytes = record->bytes, metadata = record->metadata;
	const bool system = record->kind == ALLOCATION_SYSTEM;

	lockdep_assert_held(&umacct_ledger_lock);
	if (unlikely(record->charged))
		remove_charged_locked(record);
	count_sub(&account->booked_local, bytes);
	do {
		count_sub(&account->booked, bytes);
		account->metadata -= metadata;
		account->frees += system;
		if (unlikely(account->over_soft))
			umacct_limit_check_soft_locked(account, bytes);
		account = account->parent;
	} while (account);
}

static void client_add_record_locked(struct client *client, const struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	client_name(client);
	client->allocs += record->kind == ALLOCATION_SYSTEM;
	client->booked += record->bytes;
	client->metadata += record->metadata;
	if (unlikely(record->charged))
		client->booked_charged += charged_bytes(record);
	peak_raise(&client->peak, client->booked + managed_bytes(&client->managed));
}

static __always_inline void client_remove_record_locked(struct client *client,
							const struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	client->frees += record->kind == ALLOCATION_SYSTEM;
	count_sub(&client->booked, record->bytes);
	client->metadata -= record->metadata;
	if (unlikely(record->charged))
		count_sub(&client->booked_charged, charged_bytes(record));
	if (unlikely(atomic_dec_return(&client->refs) == 1) && client_is_ending(client))
		umacct_client_unlist_idle_locked(client);
}

static __always_inline struct record *take_locked(unsigned long key)
{
	struct record *record = find_in(hash_table_bucket(&record_table, key), key);

	lockdep_assert_held(&umacct_ledger_lock);
	if (likely(record))
		__hlist_del(&record->hash);
	return record;
}

/* It becomes a spare one. */
static __always_inline u64 settle_locked(struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	umacct_record_totals.nr--;
	if (likely(record->kind != ALLOCATION_DRIVER))
		uncharge_locked(record);
	else
		count_sub(&umacct_record_totals.driver_usage, record->bytes);
	if (likely(record->client))
		client_remove_record_locked(record->client, record);
	else
		account_put(record->account);
	spare_put_locked(record);
	return record->bytes - record->metadata;
}

/**
 * umacct_record_take_locked() - take a record out of the table, so that its handle may be another's
 * @key: the driver's handle
 *
 * What it is stays counted. umacct_record_settle_locked() must follow, or
 * umacct_record_put_back_locked().
 *
 * Context: umacct_ledger_lock held.
 * Return: the record, or NULL if the handle is not known.
 */
struct record *umacct_record_take_locked(unsigned long key)
{
	return take_locked(key);
}

/**
 * umacct_record_put_back_locked() - undo umacct_record_take_locked()
 * @record: the record; nobody else has got its handle meanwhile
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_record_put_back_locked(struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	hlist_add_head(&record->hash, hash_table_bucket(&record_table, record->key));
}

/**
 * umacct_record_settle_locked() - what a record is of is gone
 * @record: from umacct_record_take_locked(); becomes a spare one
 *
 * Context: umacct_ledger_lock held. event_kick() must follow.
 * Return: the bytes of the pages that it was.
 */
u64 umacct_record_settle_locked(struct record *record)
{
	return settle_locked(record);
}

static void erase_locked(struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	__hlist_del(&record->hash);
	umacct_record_settle_locked(record);
}

/**
 * umacct_record_set_aside_locked() - put a record aside for an allocation
 * @alloc: the allocation; gets it
 *
 * Many tasks at once may have taken the spare ones since they were looked at last. Then the
 * slab allocator is asked.
 *
 * Context: process context, may sleep. umacct_ledger_lock is held, and may be given up meanwhile.
 * Return: false if there is no memory for one.
 */
bool umacct_record_set_aside_locked(struct allocation *alloc)
{
	alloc->record = spare_take_locked();
	if (unlikely(!alloc->record)) {
		raw_spin_unlock_irq(&umacct_ledger_lock);
		alloc->record = record_alloc();
		raw_spin_lock_irq(&umacct_ledger_lock);
	}
	return alloc->record;
}

/**
 * umacct_record_give_back_locked() - undo umacct_record_set_aside_locked()
 * @alloc: the allocation, which needs no record
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_record_give_back_locked(struct allocation *alloc)
{
	if (alloc->record)
		spare_put_locked(alloc->record);
	alloc->record = NULL;
}

static noinline void erase_stale_locked(struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	erase_locked(record);
	umacct_record_totals.stale_count++;
}

static noinline void untracked_locked(const struct allocation *alloc)
{
	lockdep_assert_held(&umacct_ledger_lock);
	umacct_record_totals.untracked += alloc->bytes;
	umacct_record_totals.untracked_count++;
	attribution_put(alloc->account, alloc->client);
}

/*
 * The driver has allocated. The references of @alloc pass to the record, and its penalty is set.
 * What can't be recorded is counted as untracked.
 */
static __always_inline void insert_locked(struct allocation *alloc, unsigned long key, bool charged)
{
	struct hlist_head *in = hash_table_bucket(&record_table, key);
	struct record *record, *stale;

	lockdep_assert_held(&umacct_ledger_lock);
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
	umacct_record_totals.nr++;
	if (record->client)
		client_add_record_locked(record->client, record);
	if (likely(record->kind != ALLOCATION_DRIVER)) {
		limit_book_locked(alloc);
		if (unlikely(charged))
			add_charged_locked(record);
	} else {
		umacct_record_totals.driver_usage += record->bytes;
		umacct_record_totals.driver_peak = max(umacct_record_totals.driver_peak,
						       umacct_record_totals.driver_usage);
	}
}

static noinline void failed_locked(struct allocation *alloc)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	alloc->account_id = alloc->account ? alloc->account->id : 0;
	if (alloc->counted)
		umacct_limit_uncharge_locked(alloc->account, alloc->bytes);
	if (alloc->kind == ALLOCATION_SYSTEM)
		for (account = alloc->account; account; account = account->parent)
			account->failures++;
	umacct_record_give_back_locked(alloc);
	attribution_put(alloc->account, alloc->client);
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

	lockdep_assert_held(&umacct_ledger_lock);
	for (account = alloc->account; account; account = account->parent) {
		account->alloc_time_ns += ns;
		account->alloc_time_max_ns = max(account->alloc_time_max_ns, ns);
	}
}

/**
 * umacct_record_end() - the driver has answered: see ledger_end()
 * @alloc: what ledger_begin() said yes to
 * @success: it has allocated
 * @key: its handle, if so
 * @charged: the kernel's memory controller was charged
 *
 * Context: process context, may sleep; umacct_ledger_lock not held. event_kick() must follow.
 */
void umacct_record_end(struct allocation *alloc, bool success, unsigned long key, bool charged)
{
	unsigned long ticks = jiffies - alloc->began;

	record_refill();
	attribution_lock(alloc);
	limit_end_locked(alloc);
	if (unlikely(ticks) && alloc->kind == ALLOCATION_SYSTEM)
		count_time_locked(alloc, ticks);
	if (likely(success))
		insert_locked(alloc, key, charged);
	else
		failed_locked(alloc);
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/**
 * umacct_record_erase() - the driver has freed
 * @key: its handle; one that was never recorded is ignored
 *
 * Context: any but an interrupt or NMI; umacct_ledger_lock not held. event_kick() must follow.
 * Return: the bytes of the pages that it was, or 0.
 */
u64 umacct_record_erase(unsigned long key)
{
	struct record *record;
	unsigned long flags;
	u64 bytes = 0;

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	record = take_locked(key);
	if (likely(record))
		bytes = settle_locked(record);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	record_trim();
	return bytes;
}

/* Returns how many were dropped; fewer than DROP_BATCH when the bucket has no more. */
static unsigned int drop_some(struct hlist_head *in, bool uvm)
{
	struct hlist_node *next;
	struct record *record;
	unsigned int dropped = 0;

	raw_spin_lock_irq(&umacct_ledger_lock);
	hlist_for_each_entry_safe(record, next, in, hash) {
		if (record->uvm != uvm)
			continue;
		erase_locked(record);
		if (++dropped == DROP_BATCH)
			break;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return dropped;
}

/**
 * umacct_record_drop() - forget the records of a driver that is gone
 * @uvm: nvidia-uvm's, otherwise nvidia's
 *
 * Context: may sleep; no hook of that driver is armed. event_kick() must follow.
 * Return: how many there were.
 */
u64 umacct_record_drop(bool uvm)
{
	u64 dropped = 0;
	unsigned int i, some;

	for (i = 0; i < hash_table_buckets(&record_table); i++) {
		if (hlist_empty(&record_table.heads[i]))
			continue;
		do {
			some = drop_some(&record_table.heads[i], uvm);
			dropped += some;
			umacct_record_trim_spares();
			cond_resched();
		} while (some == DROP_BATCH);
	}
	return dropped;
}

/**
 * umacct_record_init() - make the table and the stock
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int umacct_record_init(void)
{
	int err = umacct_hash_table_init(&record_table, BYTES_PER_BUCKET);

	if (err)
		return err;
	/* A second copy has another name: it is refused later, and not warned about here. */
	record_cache = kmem_cache_create(THIS_MODULE->name, sizeof(struct record),
					 __alignof__(struct record), 0, NULL);
	if (!record_cache) {
		umacct_hash_table_exit(&record_table);
		return -ENOMEM;
	}
	umacct_record_fill_spares();
	return 0;
}

/**
 * umacct_record_exit() - undo umacct_record_init(); there are no records any more
 *
 * Context: module exit.
 */
void umacct_record_exit(void)
{
	struct record *record;

	do {
		raw_spin_lock_irq(&umacct_ledger_lock);
		record = spare_take_locked();
		raw_spin_unlock_irq(&umacct_ledger_lock);
		if (record)
			kmem_cache_free(record_cache, record);
	} while (record);
	kmem_cache_destroy(record_cache);
	umacct_hash_table_exit(&record_table);
}
