// SPDX-License-Identifier: GPL-2.0-only
/*
 * Managed memory. A program has it page by page, from as many threads as it likes, so none of
 * it waits for the ledger's lock: it is counted in the accounts of its branch and in its client
 * by atomic additions, from below, and taken out again where a hard limit forbids it, as the
 * kernel's page_counter does it. Records have a table of their own, with a lock for each bucket,
 * and come from stocks that each processor has.
 *
 * The ledger's lock is taken for what is rare: the first of a process, a refusal, usage that
 * crosses a soft limit, the end of a process.
 *
 * An account and a client are found, and a branch is walked, with preemption off, which makes
 * an RCU reader.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/list_bl.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/client.h"
#include "ledger/limit.h"
#include "ledger/record.h"
#include "ledger/settings.h"
#include "memcg.h"

/* A chunk is a page at least: sixteen of them at the most share a bucket. */
#define BYTES_PER_BUCKET	(16 * PAGE_SIZE)

/* How many spare records a processor keeps at most. */
#define SPARES_MAX		64

/**
 * struct chunk - the record of a chunk
 * @hash: in the table, or among a processor's spare ones
 * @key: the driver's handle
 * @bytes: how large it is
 * @client: its holder; NULL without a process
 * @account: the account that it counts for
 * @charged: the kernel's memory controller sees it
 * @pending_reserve: @bytes count as pending for the reserve
 *
 * Holds a reference on @client, or on @account where there is no client.
 */
struct chunk {
	struct hlist_bl_node hash;
	unsigned long key;
	u64 bytes;
	struct client *client;
	struct account *account;
	bool charged;
	bool pending_reserve;
};

/**
 * struct stock - what a processor has of records
 * @spares: those that are not in use
 * @nr: how many
 * @live: how many were put into the table here, less those taken out here
 */
struct stock {
	struct hlist_bl_head spares;
	u32 nr;
	s32 live;
};

static DEFINE_PER_CPU(struct stock, stocks);

static struct kmem_cache *chunk_cache;
static struct hash_table chunk_table;

static struct hlist_bl_head *bucket_of(unsigned long key)
{
	/* Both kinds of heads are a pointer. */
	BUILD_BUG_ON(sizeof(struct hlist_bl_head) != sizeof(struct hlist_head));
	return (struct hlist_bl_head *)hash_table_bucket(&chunk_table, key);
}

/* Preemption is off for these two. */
static __always_inline struct chunk *spare_take(void)
{
	struct stock *stock = this_cpu_ptr(&stocks);
	struct hlist_bl_node *first = stock->spares.first;

	if (unlikely(!first))
		return NULL;
	stock->spares.first = first->next;
	stock->nr--;
	return hlist_bl_entry(first, struct chunk, hash);
}

static __always_inline void spare_put(struct chunk *chunk)
{
	struct stock *stock = this_cpu_ptr(&stocks);

	chunk->hash.next = stock->spares.first;
	stock->spares.first = &chunk->hash;
	stock->nr++;
}

/* Frees the surplus of records that many frees left. */
static noinline void trim_spares(void)
{
	struct chunk *chunk;

	do {
		preempt_disable();
		chunk = this_cpu_read(stocks.nr) > SPARES_MAX / 2 ? spare_take() : NULL;
		preempt_enable();
		if (chunk)
			kmem_cache_free(chunk_cache, chunk);
	} while (chunk);
}

/* --- whose it is ---------------------------------------------------------- */

/* Preemption is off. Return: false if it isn't known yet; in a kernel thread it never is. */
static __always_inline bool find_owner(struct chunk *chunk)
{
	chunk->client = client_get(task_tgid(current), cgroup_id(attribution_cgroup(true)));
	if (unlikely(!chunk->client))
		return false;
	chunk->account = chunk->client->account;
	return true;
}

/*
 * Finds the owner in a thread of nvidia-uvm's. @process: the process that it works for, or NULL; if
 * that is no client, its cgroup counts, or the one that pays. Preemption is off.
 */
static bool find_owner_for(struct chunk *chunk, struct pid *process)
{
	u64 id = cgroup_id(attribution_cgroup_of(process));

	chunk->client = process ? client_get(process, id) : NULL;
	chunk->account = chunk->client ? chunk->client->account : umacct_account_get(id);
	return chunk->account;
}

static void put_owner(struct chunk *chunk)
{
	struct client *client = chunk->client;

	if (unlikely(!client))
		account_put(chunk->account);
	else if (unlikely(atomic_dec_return(&client->refs) == 1))
		umacct_client_end(client);
}

/* Puts back a record that isn't needed any more. Preemption is off, and on again afterwards. */
static __always_inline void end(struct chunk *chunk)
{
	bool many;

	put_owner(chunk);
	spare_put(chunk);
	many = __this_cpu_read(stocks.nr) > SPARES_MAX;
	preempt_enable();
	if (unlikely(many))
		trim_spares();
}

/*
 * The first of a process, or of one in another cgroup. Return: the record with an owner, or NULL for
 * want of memory; also where there is no record.
 */
static noinline struct chunk *find_owner_slowly(struct chunk *chunk)
{
	struct allocation alloc = { .uvm = true };

	if (!chunk)
		return NULL;
	umacct_attribution_make(&alloc);
	chunk->client = alloc.client;
	chunk->account = alloc.account;
	if (likely(alloc.client))
		client_name(alloc.client);
	if (likely(alloc.account))
		return chunk;
	kmem_cache_free(chunk_cache, chunk);
	return NULL;
}

/* --- counting ------------------------------------------------------------- */

/* A value below zero would read as a huge one; see count_sub(). */
static noinline void underflow(atomic64_t *count)
{
	WARN_ONCE(1, "managed memory is below zero\n");
	atomic64_set(count, 0);
}

static __always_inline void take_off(atomic64_t *count, u64 bytes)
{
	if (unlikely(atomic64_add_negative(-bytes, count)))
		underflow(count);
}

/* Down to a level: the way up may have become shorter, as removed accounts are left out of it. */
static __always_inline void usage_sub_to(struct account *from, u32 level, u64 bytes)
{
	for (; from && from->level >= level; from = READ_ONCE(from->parent))
		take_off(&from->managed.bytes, bytes);
}

/*
 * A request that visibly does not fit is not counted, so that a tenant who asks for too much is in
 * no other account's way, not even for a moment.
 */
static noinline struct account *too_much_for(struct account *at, u64 bytes)
{
	for (; at; at = READ_ONCE(at->parent)) {
		const u64 hard = READ_ONCE(at->settings.hard), usage = account_usage(at);

		if (usage > hard || bytes > hard - usage)
			return at;
	}
	return NULL;
}

static void check_soft_locked(struct account *account, u64 bytes)
{
	lockdep_assert_held(&umacct_ledger_lock);
	for (account = account_nearest_online(account); account; account = account->parent)
		umacct_limit_check_soft_locked(account, bytes);
}

static noinline void check_soft(struct account *account, u64 bytes)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	check_soft_locked(account, bytes);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
	event_kick();
}

/*
 * It is counted, and looked at then: see limit_add_locked(). @crossed is set if a soft limit
 * was crossed.
 *
 * @above: never refused. That is a page for a fault of a GPU: the driver would cancel the faults of
 * all that were served together, whosever they are. The next fault in a VA space of this account is,
 * while usage is above the limit: see umacct_chunk_may_fault().
 *
 * Return: NULL, or the account whose limit forbids it.
 */
static __always_inline struct account *usage_add(struct account *account, u64 bytes, bool above,
						 bool *crossed)
{
	struct account *from = account_nearest_online(account), *at;
	u64 usage;

	if (unlikely(READ_ONCE(umacct_settings.hard_limits)) && !above) {
		at = too_much_for(from, bytes);
		if (at)
			return at;
	}
	for (at = from; at; at = READ_ONCE(at->parent)) {
		usage = atomic64_add_return(bytes, &at->managed.bytes) + READ_ONCE(at->booked);
		if (unlikely(usage > READ_ONCE(at->settings.hard))) {
			if (!above) {
				usage_sub_to(from, at->level, bytes);
				return at;
			}
			WRITE_ONCE(at->over_by_fault, true);
		}
		peak_raise(&at->peak, usage);
		if (unlikely(usage > READ_ONCE(at->settings.soft)))
			*crossed |= !READ_ONCE(at->over_soft);
	}
	account_add_managed_local(from, bytes);
	return NULL;
}

static __always_inline void usage_sub(struct account *account, u64 bytes)
{
	struct account *from = account_nearest_online(account), *at = from;
	bool crossed = false;

	do {
		take_off(&at->managed.bytes, bytes);
		/* Pairs with the barrier in umacct_limit_check_soft_locked(). */
		smp_mb__after_atomic();
		if (unlikely(READ_ONCE(at->over_soft)))
			crossed |= account_usage(at) <= READ_ONCE(at->settings.soft);
		at = READ_ONCE(at->parent);
	} while (at);
	account_add_managed_local(from, -bytes);
	if (unlikely(crossed))
		check_soft(from, bytes);
}

/* The memory controller doesn't see it. Preemption is off. */
static noinline void add_uncharged(const struct chunk *chunk, s64 bytes)
{
	struct account *at = account_nearest_online(chunk->account);

	for (; at; at = READ_ONCE(at->parent))
		atomic64_add(bytes, &at->managed.uncharged);
	if (chunk->client)
		atomic64_add(bytes, &chunk->client->managed.uncharged);
}

/* --- limits --------------------------------------------------------------- */

static struct allocation allocation_of(const struct chunk *chunk)
{
	return (struct allocation) {
		.bytes = chunk->bytes,
		.page_size = chunk->bytes,
		.uvm = true,
		.client = chunk->client,
		.account = chunk->account,
	};
}

/*
 * It didn't fit. Others may have been in the way that then didn't fit either: they come here one
 * by one, so that of those that are too many together, the first has it.
 */
static noinline bool usage_add_slowly(struct chunk *chunk, struct shortage *why)
{
	struct allocation alloc = allocation_of(chunk);
	struct account *limiting;
	bool crossed = false;

	raw_spin_lock_irq(&umacct_ledger_lock);
	limiting = usage_add(chunk->account, chunk->bytes, false, &crossed);
	if (limiting)
		umacct_refusal_hard(&alloc, limiting);
	else if (crossed)
		check_soft_locked(chunk->account, chunk->bytes);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	event_kick();
	*why = alloc.shortage;
	return !limiting;
}

static noinline bool take_reserve(struct chunk *chunk, bool bulk, struct shortage *why)
{
	struct reserve_room room = umacct_reserve_room();
	struct allocation alloc = allocation_of(chunk);

	if (!room.must_leave)
		return true;
	room.bulk = bulk;
	chunk->pending_reserve = umacct_reserve_take(chunk->account, chunk->bytes, &room);
	if (chunk->pending_reserve)
		return true;
	room = umacct_reserve_room();
	room.bulk = bulk;
	raw_spin_lock_irq(&umacct_ledger_lock);
	chunk->pending_reserve = umacct_reserve_take(chunk->account, chunk->bytes, &room);
	if (!chunk->pending_reserve)
		umacct_refusal_reserve(&alloc, &room);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	*why = alloc.shortage;
	return chunk->pending_reserve;
}

static noinline void give_up(struct chunk *chunk, bool added)
{
	preempt_disable();
	if (added)
		usage_sub(chunk->account, chunk->bytes);
	end(chunk);
	event_kick();
}

/* --- from the driver's allocation to its free ----------------------------- */

/**
 * umacct_chunk_begin() - nvidia-uvm is about to take memory for a client
 * @bytes: how much
 * @charges: it asks the kernel to charge the memory
 * @bulk: a program may take as much as it likes of this, page by page
 * @why: where it is refused, set to why
 *
 * umacct_chunk_end() must follow, whatever the driver answers, unless it is refused.
 *
 * Context: process context, may sleep; the driver's locks are held.
 * Return: its record; CHUNK_UNTRACKED if it can't be recorded, for want of memory, and no limit
 *	could apply; or NULL if a limit forbids it.
 */
struct chunk *umacct_chunk_begin(u64 bytes, bool charges, bool bulk, struct shortage *why)
{
	struct account *limiting;
	bool crossed = false;
	struct chunk *chunk;

	preempt_disable();
	chunk = spare_take();
	if (unlikely(!chunk)) {
		preempt_enable();
		chunk = kmem_cache_alloc(chunk_cache, GFP_LEDGER);
		preempt_disable();
	}
	if (unlikely(!chunk || !find_owner(chunk))) {
		preempt_enable();
		chunk = find_owner_slowly(chunk);
		if (!chunk) {
			why->type = 0;
			return umacct_refusal_unattributed() ? NULL : CHUNK_UNTRACKED;
		}
		preempt_disable();
	}
	chunk->bytes = bytes;
	chunk->charged = charges && memcg_charges_active();
	chunk->pending_reserve = false;
	limiting = usage_add(chunk->account, bytes, false, &crossed);
	if (unlikely(crossed && !limiting))
		check_soft(chunk->account, bytes);
	preempt_enable();
	if (unlikely(limiting) && !usage_add_slowly(chunk, why)) {
		give_up(chunk, false);
		return NULL;
	}
	if (unlikely(READ_ONCE(umacct_settings.must_leave)) && !take_reserve(chunk, bulk, why)) {
		give_up(chunk, true);
		return NULL;
	}
	return chunk;
}

static struct chunk *chunk_of_thread(struct pid *process)
{
	struct chunk *chunk = kmem_cache_alloc(chunk_cache, GFP_LEDGER);
	bool found;

	if (!chunk)
		return NULL;
	preempt_disable();
	found = find_owner_for(chunk, process);
	preempt_enable();
	return found ? chunk : find_owner_slowly(chunk);
}

/*
 * umacct_chunk_begin() in a thread of nvidia-uvm's, which serves a fault of a GPU on the VA space
 * of @process, or NULL. The reserve doesn't apply, and a page is never refused. Where a limit
 * forbids more than that, it is no refusal yet: the driver asks for less.
 */
struct chunk *umacct_chunk_begin_in_thread(u64 bytes, struct pid *process)
{
	struct chunk *chunk = chunk_of_thread(process);
	struct account *limiting;
	bool crossed = false;

	if (!chunk)
		return bytes > PAGE_SIZE && umacct_refusal_unattributed() ? NULL : CHUNK_UNTRACKED;
	chunk->bytes = bytes;
	chunk->pending_reserve = false;
	preempt_disable();
	chunk->charged = memcg_charges_active();
	limiting = usage_add(chunk->account, bytes, bytes <= PAGE_SIZE, &crossed);
	if (crossed && !limiting)
		check_soft(chunk->account, bytes);
	preempt_enable();
	if (!limiting)
		return chunk;
	give_up(chunk, false);
	return NULL;
}

/*
 * May a fault of a GPU be served on the VA space of @process, or NULL? Not as long as such faults
 * have brought an account above its limit, which sets @why. Memory that is above a limit because
 * the limit was lowered hinders no fault. May sleep; the driver's locks are held.
 */
bool umacct_chunk_may_fault(struct pid *process, struct shortage *why)
{
	struct chunk *chunk;
	struct allocation alloc;
	struct account *at;

	if (likely(!READ_ONCE(umacct_settings.hard_limits)))
		return true;
	chunk = chunk_of_thread(process);
	if (!chunk)
		return true;
	chunk->bytes = PAGE_SIZE;
	alloc = allocation_of(chunk);
	raw_spin_lock_irq(&umacct_ledger_lock);
	for (at = account_nearest_online(chunk->account); at; at = at->parent) {
		if (!READ_ONCE(at->over_by_fault))
			continue;
		if (account_usage(at) > at->settings.hard)
			break;
		WRITE_ONCE(at->over_by_fault, false);
	}
	if (at)
		umacct_refusal_hard(&alloc, at);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	*why = alloc.shortage;
	give_up(chunk, false);
	return !at;
}

static struct chunk *find_in(struct hlist_bl_head *bucket, unsigned long key)
{
	struct hlist_bl_node *node;
	struct chunk *chunk;

	hlist_bl_for_each_entry(chunk, node, bucket, hash)
		if (chunk->key == key)
			return chunk;
	return NULL;
}

/* Return: the record that was there under its handle: that was freed unseen. */
static __always_inline struct chunk *insert(struct chunk *chunk)
{
	struct hlist_bl_head *bucket = bucket_of(chunk->key);
	struct chunk *stale;

	hlist_bl_lock(bucket);
	stale = find_in(bucket, chunk->key);
	if (unlikely(stale))
		__hlist_bl_del(&stale->hash);
	hlist_bl_add_head(&chunk->hash, bucket);
	hlist_bl_unlock(bucket);
	return stale;
}

static noinline void settle_stale(struct chunk *stale)
{
	this_cpu_dec(stocks.live);
	umacct_chunk_settle(stale);
	raw_spin_lock_irq(&umacct_ledger_lock);
	umacct_record_totals.stale_count++;
	raw_spin_unlock_irq(&umacct_ledger_lock);
}

/* The account that it is to count for; 0 if it isn't known. Before umacct_chunk_end(). */
u64 umacct_chunk_account_id(const struct chunk *chunk)
{
	return chunk == CHUNK_UNTRACKED ? 0 : chunk->account->id;
}

/*
 * Computes how many nanoseconds the current task is to wait for having it, and for which account's
 * soft limit. Before umacct_chunk_end().
 */
u64 umacct_chunk_penalty(const struct chunk *chunk, u64 *account_id)
{
	struct account *at;
	u64 longest = 0, ns;

	if (chunk == CHUNK_UNTRACKED)
		return 0;
	preempt_disable();
	for (at = account_nearest_online(chunk->account); at; at = READ_ONCE(at->parent)) {
		ns = umacct_limit_penalty(at);
		if (ns > longest) {
			longest = ns;
			*account_id = at->id;
		}
	}
	preempt_enable();
	return longest;
}

/* nvidia-uvm has answered: it has the memory, under the handle @key, or not. May sleep. */
void umacct_chunk_end(struct chunk *chunk, u64 bytes, bool success, unsigned long key)
{
	struct client *client;
	struct chunk *stale;

	if (unlikely(chunk == CHUNK_UNTRACKED)) {
		if (success)
			umacct_untracked(bytes);
		return;
	}
	if (unlikely(chunk->pending_reserve))
		umacct_reserve_settle(bytes);
	if (unlikely(!success)) {
		give_up(chunk, true);
		return;
	}
	chunk->key = key;
	client = chunk->client;
	preempt_disable();
	if (likely(client))
		peak_raise(&client->peak, READ_ONCE(client->booked) +
			   atomic64_add_return(bytes, &client->managed.bytes));
	if (unlikely(!chunk->charged))
		add_uncharged(chunk, bytes);
	__this_cpu_inc(stocks.live);
	stale = insert(chunk);
	preempt_enable();
	if (unlikely(stale))
		settle_stale(stale);
}

/*
 * nvidia-uvm is about to give memory back, and the handle with it. Returns the record, or NULL if
 * the handle is not known. What it was stays in its account until it is really gone:
 * umacct_chunk_settle() must follow. Not in interrupts.
 */
struct chunk *umacct_chunk_take(unsigned long key)
{
	struct hlist_bl_head *bucket = bucket_of(key);
	struct chunk *chunk;

	hlist_bl_lock(bucket);
	chunk = find_in(bucket, key);
	if (likely(chunk)) {
		__hlist_bl_del(&chunk->hash);
		__this_cpu_dec(stocks.live);
	}
	hlist_bl_unlock(bucket);
	return chunk;
}

/* nvidia-uvm has given memory back; @chunk may be NULL. Not in interrupts. */
void umacct_chunk_settle(struct chunk *chunk)
{
	if (unlikely(!chunk))
		return;
	preempt_disable();
	usage_sub(chunk->account, chunk->bytes);
	if (likely(chunk->client))
		take_off(&chunk->client->managed.bytes, chunk->bytes);
	if (unlikely(!chunk->charged))
		add_uncharged(chunk, -chunk->bytes);
	end(chunk);
}

static struct chunk *take_first(struct hlist_bl_head *bucket)
{
	struct chunk *chunk = NULL;

	hlist_bl_lock(bucket);
	if (!hlist_bl_empty(bucket)) {
		chunk = hlist_bl_entry(hlist_bl_first(bucket), struct chunk, hash);
		__hlist_bl_del(&chunk->hash);
		__this_cpu_dec(stocks.live);
	}
	hlist_bl_unlock(bucket);
	return chunk;
}

/* Forgets all managed memory: nvidia-uvm is gone. Returns how many chunks there were. May sleep. */
u64 umacct_chunk_drop(void)
{
	struct chunk *chunk;
	u64 dropped = 0;
	unsigned int i;

	for (i = 0; i < hash_table_buckets(&chunk_table); i++) {
		for (;;) {
			chunk = take_first((struct hlist_bl_head *)&chunk_table.heads[i]);
			if (!chunk)
				break;
			umacct_chunk_settle(chunk);
			dropped++;
		}
		cond_resched();
	}
	return dropped;
}

/* How many chunks there are. */
u32 umacct_chunk_count(void)
{
	int cpu, live = 0;

	for_each_possible_cpu(cpu)
		live += READ_ONCE(per_cpu(stocks.live, cpu));
	return max(live, 0);
}

/* Makes the table. */
int umacct_chunk_init(void)
{
	int err = umacct_hash_table_init(&chunk_table, BYTES_PER_BUCKET);
	char name[MODULE_NAME_LEN + 8];

	if (err)
		return err;
	/* A second copy of the module has another name, as in umacct_record_init(). */
	snprintf(name, sizeof(name), "%s_chunk", THIS_MODULE->name);
	chunk_cache = kmem_cache_create(name, sizeof(struct chunk), __alignof__(struct chunk), 0,
					NULL);
	if (!chunk_cache) {
		umacct_hash_table_exit(&chunk_table);
		return -ENOMEM;
	}
	return 0;
}

/* Undoes umacct_chunk_init(); there are no chunks any more. */
void umacct_chunk_exit(void)
{
	struct hlist_bl_node *node;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct stock *stock = &per_cpu(stocks, cpu);

		while ((node = stock->spares.first)) {
			stock->spares.first = node->next;
			kmem_cache_free(chunk_cache, hlist_bl_entry(node, struct chunk, hash));
		}
	}
	kmem_cache_destroy(chunk_cache);
	umacct_hash_table_exit(&chunk_table);
}
