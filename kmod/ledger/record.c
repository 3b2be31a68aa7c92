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
#include <linux/slab.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/client.h"
#include "ledger/limit.h"
#include "ledger/record.h"
#include "memcg.h"

/* An allocation is a page at least: sixteen of them at the most share a bucket. */
#define BYTES_PER_BUCKET	(16 * PAGE_SIZE)

/* Records that are dropped at a time, which bounds the wait for the lock. */
#define DROP_BATCH		64

/**
 * struct record - one live allocation
 * @hash: in the table, or among the spare ones
 * @key: the driver's handle
 * @bytes: what left the free list, and @metadata
 * @metadata: what the driver keeps because of it
 * @pinned: in its place, for ALLOCATION_HEAP: memory of the program's own that it registered
 * @client: who made it; NULL for the driver itself and where no process did
 * @account: the account that it counts for; NULL for the driver itself
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
	union {
		u64 metadata;
		u64 pinned;
	};
	struct client *client;
	struct account *account;
	enum allocation_kind kind;
	bool uvm;
	bool charged;
};

static struct kmem_cache *record_cache;
static struct hash_table record_table;

/* Guarded by umacct_ledger_lock. */
static struct hlist_node *spares;
u32 umacct_record_spares;

static struct record *find_in(struct hlist_head *in, unsigned long key)
{
	struct hlist_node *node;

	hlist_for_each(node, in)
		if (hlist_entry(node, struct record, hash)->key == key)
			return hlist_entry(node, struct record, hash);
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
	struct record *record = kmem_cache_alloc(record_cache, umacct_memcg_gfp(sizeof(*record)));

	/* A full cgroup is no reason not to count its memory if nothing is enforced. */
	if (unlikely(!record) && !READ_ONCE(umacct_settings.precheck_enabled))
		record = kmem_cache_alloc(record_cache, GFP_LEDGER);
	return record;
}

/* See record_refill(). */
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

/*
 * Frees what many frees left too much of; see record_trim(). Takes as many as are too much, but no more
 * than are dropped at a time.
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

/* A record's share of CHARGED. */
static u64 charged_bytes(const struct record *record)
{
	return record->charged ? record->bytes - record->metadata : 0;
}

/* Counts that, or less than 0, in the accounts. */
static noinline void add_charged_locked(const struct record *record, s64 bytes)
{
	struct account *account = account_nearest_online(record->account);

	lockdep_assert_held(&umacct_ledger_lock);
	for (; account; account = account->parent)
		account->booked_charged += bytes;
}

static __always_inline void usage_sub_locked(const struct record *record)
{
	struct account *account = account_nearest_online(record->account);
	const u64 bytes = record->bytes, metadata = record->metadata;
	const bool system = record->kind == ALLOCATION_SYSTEM;

	lockdep_assert_held(&umacct_ledger_lock);
	if (unlikely(record->charged))
		add_charged_locked(record, -charged_bytes(record));
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

/* Counts registered memory, or less than 0. It is in no usage: the program has it anyway. */
static void pin_locked(const struct record *record, s64 bytes)
{
	struct account *account = account_nearest_online(record->account);

	lockdep_assert_held(&umacct_ledger_lock);
	record->client->pinned += bytes;
	for (; account; account = account->parent)
		account->pinned += bytes;
}

/* Settles the heap of a client: umacct_heap_trim() or umacct_heap_drop() follows. */
static noinline void settle_heap_locked(struct record *record)
{
	struct client *client = record->client;

	lockdep_assert_held(&umacct_ledger_lock);
	if (record->pinned)
		pin_locked(record, -(s64)record->pinned);
	heap_give_of(client, record->bytes);
	if (atomic_dec_return(&client->refs) == 1 && client_is_ending(client))
		umacct_client_unlist_idle_locked(client);
	spare_put_locked(record);
}

/* It becomes a spare one. */
static __always_inline void settle_locked(struct record *record)
{
	lockdep_assert_held(&umacct_ledger_lock);
	umacct_record_totals.nr--;
	if (unlikely(record->kind == ALLOCATION_HEAP)) {
		settle_heap_locked(record);
		return;
	}
	if (likely(record->kind != ALLOCATION_DRIVER))
		usage_sub_locked(record);
	else
		count_sub(&umacct_record_totals.driver_usage, record->bytes);
	if (likely(record->client))
		client_remove_record_locked(record->client, record);
	else
		account_put(record->account);
	spare_put_locked(record);
}

/*
 * Puts a record aside for an allocation. Many tasks at once may have taken the spare ones since
 * they were looked at last. Then the slab allocator is asked. May sleep, and give
 * umacct_ledger_lock up meanwhile. Returns false if there is no memory for one.
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

/* Undoes umacct_record_set_aside_locked(). */
void umacct_record_give_back_locked(struct allocation *alloc)
{
	if (alloc->record)
		spare_put_locked(alloc->record);
	alloc->record = NULL;
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
 * An allocation that can't be recorded is counted as untracked. Returns the record that had the same
 * handle, or NULL: its memory was freed unseen, and the caller settles it.
 */
static __always_inline struct record *insert_locked(struct allocation *alloc, unsigned long key, bool charged)
{
	struct hlist_head *in = hash_table_bucket(&record_table, key);
	struct record *record, *stale;

	lockdep_assert_held(&umacct_ledger_lock);
	if (!alloc->record && (alloc->account || alloc->kind == ALLOCATION_DRIVER))
		alloc->record = spare_take_locked();
	record = alloc->record;
	if (unlikely(!record)) {
		untracked_locked(alloc);
		return NULL;
	}
	stale = take_locked(key);
	umacct_record_totals.stale_count += !!stale;
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
	if (unlikely(record->kind == ALLOCATION_HEAP)) {
		record->pinned = alloc->pinned;
		if (record->pinned)
			pin_locked(record, record->pinned);
		return stale;
	}
	if (record->client)
		client_add_record_locked(record->client, record);
	if (likely(record->kind != ALLOCATION_DRIVER)) {
		limit_book_locked(alloc);
		if (unlikely(charged))
			add_charged_locked(record, charged_bytes(record));
	} else {
		umacct_record_totals.driver_usage += record->bytes;
		umacct_record_totals.driver_peak = max(umacct_record_totals.driver_peak,
						       umacct_record_totals.driver_usage);
	}
	return stale;
}

static noinline void failed_locked(struct allocation *alloc)
{
	struct account *account;

	lockdep_assert_held(&umacct_ledger_lock);
	alloc->account_id = alloc->account ? alloc->account->id : 0;
	if (alloc->counted)
		umacct_limit_sub_locked(alloc->account, alloc->bytes);
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

/* The driver has answered: see ledger_end(). event_kick() must follow. */
void umacct_record_end(struct allocation *alloc, bool success, unsigned long key, bool charged)
{
	unsigned long ticks = jiffies - alloc->began;
	struct record *stale = NULL;

	if (unlikely(!success && alloc->kind == ALLOCATION_HEAP))
		heap_give(alloc->client->number, alloc->bytes);
	record_refill();
	attribution_lock(alloc);
	limit_end_locked(alloc);
	if (unlikely(ticks) && alloc->kind == ALLOCATION_SYSTEM)
		count_time_locked(alloc, ticks);
	if (likely(success))
		stale = insert_locked(alloc, key, charged);
	else
		failed_locked(alloc);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	if (unlikely(stale))
		umacct_record_settle(stale);
}

/* The driver has freed: see ledger_free(). event_kick() must follow. */
void umacct_record_erase(unsigned long key)
{
	struct record *record;
	unsigned long flags;

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	record = take_locked(key);
	if (likely(record))
		settle_locked(record);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	record_trim();
}

/*
 * The driver is about to give memory back, and the handle with it. Returns the record, or NULL if
 * the handle is not known. What it was stays in its account until it is really gone:
 * umacct_record_settle() must follow, or umacct_record_put_back(). The handle may be another
 * allocation's meanwhile. Not in interrupts.
 */
struct record *umacct_record_take(unsigned long key)
{
	struct record *record;
	unsigned long flags;

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	record = take_locked(key);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	return record;
}

/* The driver has not given the memory back; @record may be NULL. Not in interrupts. */
void umacct_record_put_back(struct record *record)
{
	unsigned long flags;

	if (!record)
		return;
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	hlist_add_head(&record->hash, hash_table_bucket(&record_table, record->key));
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
}

/* The driver has given the memory back; @record may be NULL. Not in interrupts. */
void umacct_record_settle(struct record *record)
{
	struct client *client;
	unsigned long flags;

	if (!record)
		return;
	client = record->kind == ALLOCATION_HEAP ? record->client : NULL;
	rcu_read_lock();
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	settle_locked(record);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	if (client && heap_give_of(client, 0))
		umacct_heap_trim(client);
	rcu_read_unlock();
	record_trim();
	event_kick();
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
		__hlist_del(&record->hash);
		settle_locked(record);
		if (++dropped == DROP_BATCH)
			break;
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return dropped;
}

/* See umacct_ledger_drop(). event_kick() must follow. */
u64 umacct_record_drop(bool uvm)
{
	u64 dropped = 0;
	unsigned int i, some;

	for (i = 0; i < hash_table_buckets(&record_table); i++) {
		if (!(i % 1024))
			cond_resched();
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

/* Makes the table and the stock. */
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

/* Undoes umacct_record_init(); there are no records any more. */
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
