// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger's books: an allocation begins, ends, and is freed one day. See
 * ledger.h for what is kept and how it is locked.
 */
#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/record.h"

/* One bucket for this many bytes of memory: most allocations of size are larger. */
#define BYTES_PER_BUCKET	SZ_1M

/* The stock of spare records. */
#define SPARES_LOW		16
#define SPARES_HIGH		64

struct ledger ledger = {
	.accounts = LIST_HEAD_INIT(ledger.accounts),
	.clients = LIST_HEAD_INIT(ledger.clients),
};

static struct kmem_cache *record_cache;
static struct hlist_head *record_hash;
static unsigned int record_hash_bits;

/**
 * ledger_refresh() - see to it that what is gone is not shown
 *
 * Context: may sleep; ledger_lock not held.
 */
void ledger_refresh(void)
{
	account_refresh();
	client_reap();
}

static struct hlist_head *bucket(unsigned long key)
{
	return &record_hash[hash_long(key, record_hash_bits)];
}

static struct record *record_find_locked(unsigned long key)
{
	struct record *record;

	hlist_for_each_entry(record, bucket(key), hash)
		if (record->key == key)
			return record;
	return NULL;
}

/*
 * The cgroup that an allocation counts for. nvidia-uvm's kernel threads work for
 * a process and say for which by the active memcg.
 */
static struct cgroup *owner(enum record_kind kind)
{
#ifdef CONFIG_MEMCG
	if (kind == RECORD_MANAGED && current->active_memcg &&
	    cgroup_subsys_on_dfl(memory_cgrp_subsys))
		return current->active_memcg->css.cgroup;
#endif
	return task_dfl_cgroup(current);
}

static u64 owner_id(enum record_kind kind)
{
	u64 id;

	rcu_read_lock();
	id = cgroup_id(owner(kind));
	rcu_read_unlock();
	return id;
}

/* The account of an allocation's owner, made if need be, with a reference. */
static struct account *owner_account(enum record_kind kind)
{
	struct account *account;
	struct cgroup *cgrp;

	rcu_read_lock();
	cgrp = owner(kind);
	if (!cgroup_tryget(cgrp))
		cgrp = NULL;
	rcu_read_unlock();
	if (!cgrp)
		return NULL;
	account = account_create(cgrp);
	cgroup_put(cgrp);
	return account;
}

static bool works_for_a_process(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/* A first allocation of this process on this account. */
static void identify_slow(struct allocation *alloc)
{
	struct account *account = owner_account(alloc->kind);
	struct client *client = NULL, *there;

	if (!account)
		return;
	if (works_for_a_process()) {
		client = client_alloc();
		if (!client) {
			account_put(account);
			return;
		}
	}
	raw_spin_lock(&ledger_lock);
	/* Other threads of the process may have been here meanwhile. */
	there = client ? client_find_locked(client->pid, account->id) : NULL;
	if (there) {
		client_discard_locked(client, account);
		client = there;
	} else if (client) {
		client_add_locked(client, account);
	}
	if (client)
		client->refs++;
	alloc->client = client;
	alloc->account = client ? client->account : account;
	raw_spin_unlock(&ledger_lock);
}

/*
 * Takes the lock, and finds out whom the allocation counts for and holds on to
 * it, unless that is known. Without memory, the account stays unknown.
 */
static void lock_identified(struct allocation *alloc)
	__acquires(&ledger_lock)
{
	struct client *client = NULL;
	u64 id;

	if (alloc->account || alloc->kind == RECORD_DRIVER) {
		raw_spin_lock(&ledger_lock);
		return;
	}
	id = owner_id(alloc->kind);
	raw_spin_lock(&ledger_lock);
	if (works_for_a_process())
		client = client_find_locked(task_tgid(current), id);
	if (likely(client)) {
		client->refs++;
		alloc->client = client;
		alloc->account = client->account;
		return;
	}
	raw_spin_unlock(&ledger_lock);
	identify_slow(alloc);
	raw_spin_lock(&ledger_lock);
}

static void release_locked(struct account *account, struct client *client)
{
	if (client)
		client_put_locked(client);
	else if (account)
		account_put_locked(account);
}

static bool decide(struct allocation *alloc)
{
	bool allowed = true;
	u64 available = 0;

	if (READ_ONCE(settings.reserve))
		available = (u64)si_mem_available() << PAGE_SHIFT;
	lock_identified(alloc);
	if (alloc->account && alloc->kind == RECORD_SYSTEM) {
		allowed = limit_reserve_locked(alloc, available);
		if (!allowed)
			release_locked(alloc->account, alloc->client);
	}
	raw_spin_unlock(&ledger_lock);
	if (!allowed)
		event_kick();
	return allowed;
}

/**
 * ledger_begin() - the driver is about to be asked for memory
 * @alloc: bytes, pages, page_size and kind filled in, the rest zero
 *
 * If this says yes, ledger_end() must follow, whatever the driver answers.
 *
 * Context: process context, may sleep; the driver's locks are held.
 * Return: false if a limit forbids it.
 */
bool ledger_begin(struct allocation *alloc)
{
	if (likely(!READ_ONCE(settings.precheck)) || alloc->kind != RECORD_SYSTEM)
		return true;
	return decide(alloc);
}

/*
 * Records go through a stock of spare ones: cheaper than the slab allocator, and
 * there when that has nothing to give.
 */
static struct record *record_get_locked(void)
{
	struct record *record;

	if (unlikely(hlist_empty(&ledger.spares)))
		return NULL;
	record = hlist_entry(ledger.spares.first, struct record, hash);
	hlist_del(&record->hash);
	ledger.nr_spares--;
	return record;
}

static void record_put_locked(struct record *record)
{
	hlist_add_head(&record->hash, &ledger.spares);
	ledger.nr_spares++;
}

/* Fills the stock of spare records up. */
static void stock_spares(void)
{
	while (READ_ONCE(ledger.nr_spares) < SPARES_HIGH) {
		struct record *record = kmem_cache_alloc(record_cache, GFP_KERNEL | __GFP_NOWARN);

		if (!record)
			return;
		raw_spin_lock(&ledger_lock);
		record_put_locked(record);
		raw_spin_unlock(&ledger_lock);
	}
}

static void add_locked(const struct record *record, struct allocation *alloc)
{
	u64 bytes = record->bytes, charged = record->charged ? record->bytes : 0;
	struct account *account;

	account = account_heir(record->account);
	account->own += bytes;
	for (; account; account = account->parent) {
		account->usage += bytes;
		account->charged += charged;
		account->allocs++;
		if (account->usage > account->peak)
			account->peak = account->usage;
		if (unlikely(account->usage > account->settings.soft))
			limit_rose_locked(account, alloc);
	}
}

static void remove_locked(const struct record *record)
{
	u64 bytes = record->bytes, charged = record->charged ? record->bytes : 0;
	struct account *account;

	account = account_heir(record->account);
	account->own -= bytes;
	for (; account; account = account->parent) {
		account->usage -= bytes;
		account->charged -= charged;
		account->frees++;
		if (unlikely(account->over_soft))
			limit_fell_locked(account, bytes);
	}
}

static void move_managed_locked(const struct record *record, s64 bytes)
{
	struct account *account = account_heir(record->account);

	account->own_managed += bytes;
	for (; account; account = account->parent)
		account->managed += bytes;
}

static void record_add_locked(struct record *record, struct allocation *alloc)
{
	struct client *client = record->client;

	hlist_add_head(&record->hash, bucket(record->key));
	ledger.nr_records++;
	if (client) {
		client->records++;
		if (record->kind == RECORD_MANAGED) {
			client->managed += record->bytes;
		} else {
			client->allocs++;
			client->usage += record->bytes;
			client->peak = max(client->peak, client->usage);
			if (record->charged)
				client->charged += record->bytes;
		}
	}
	switch (record->kind) {
	case RECORD_SYSTEM:
		add_locked(record, alloc);
		break;
	case RECORD_DRIVER:
		ledger.driver_usage += record->bytes;
		ledger.driver_peak = max(ledger.driver_peak, ledger.driver_usage);
		break;
	case RECORD_MANAGED:
		move_managed_locked(record, record->bytes);
		break;
	}
}

static void record_remove_locked(struct record *record)
{
	struct client *client = record->client;

	hlist_del(&record->hash);
	ledger.nr_records--;
	switch (record->kind) {
	case RECORD_SYSTEM:
		remove_locked(record);
		break;
	case RECORD_DRIVER:
		ledger.driver_usage -= record->bytes;
		break;
	case RECORD_MANAGED:
		move_managed_locked(record, -(s64)record->bytes);
		break;
	}
	if (client) {
		if (record->kind == RECORD_MANAGED) {
			client->managed -= record->bytes;
		} else {
			client->frees++;
			client->usage -= record->bytes;
			if (record->charged)
				client->charged -= record->bytes;
		}
		/* The usual end: a process that exits closes the driver. */
		if (!--client->records &&
		    (client_exited(client) ||
		     ((current->flags & PF_EXITING) && client->pid == task_tgid(current))))
			client_unlist_locked(client);
	}
	release_locked(record->account, client);
}

/**
 * ledger_end() - the driver has answered
 * @alloc: what ledger_begin() said yes to
 * @success: it has allocated
 * @key: its handle, if so
 * @charged: the kernel's memory controller was charged
 *
 * Sets the penalty of @alloc.
 *
 * What can't be recorded for want of memory is counted as untracked.
 *
 * Context: process context, may sleep; the driver's locks are held.
 */
void ledger_end(struct allocation *alloc, bool success, unsigned long key, bool charged)
{
	struct record *record, *stale;
	struct account *account;

	if (unlikely(READ_ONCE(ledger.nr_spares) < SPARES_LOW))
		stock_spares();
	lock_identified(alloc);
	limit_unreserve_locked(alloc);
	if (unlikely(!success)) {
		if (alloc->kind == RECORD_SYSTEM)
			for (account = alloc->account; account; account = account->parent)
				account->failures++;
		release_locked(alloc->account, alloc->client);
		goto out;
	}
	record = alloc->account || alloc->kind == RECORD_DRIVER ? record_get_locked() : NULL;
	if (unlikely(!record)) {
		ledger.untracked += alloc->bytes;
		ledger.untracked_count++;
		release_locked(alloc->account, alloc->client);
		goto out;
	}
	/* A handle that is handed out again was freed unseen. */
	stale = record_find_locked(key);
	if (unlikely(stale)) {
		record_remove_locked(stale);
		record_put_locked(stale);
		ledger.stale_count++;
	}
	record->key = key;
	record->bytes = alloc->bytes;
	record->client = alloc->client;
	record->account = alloc->account;
	record->kind = alloc->kind;
	record->charged = charged;
	record_add_locked(record, alloc);
	if (alloc->client)
		memcpy(alloc->client->comm, current->comm, TASK_COMM_LEN);
out:
	raw_spin_unlock(&ledger_lock);
	event_kick();
}

/**
 * ledger_free() - the driver has given memory back
 * @key: its handle; one that was never recorded is ignored
 *
 * Context: any but an interrupt or NMI.
 * Return: the bytes that were given back, 0 if the handle is not known.
 */
u64 ledger_free(unsigned long key)
{
	struct record *record, *excess = NULL;
	u64 bytes = 0;

	raw_spin_lock(&ledger_lock);
	record = record_find_locked(key);
	if (record) {
		bytes = record->bytes;
		record_remove_locked(record);
		record_put_locked(record);
		excess = ledger.nr_spares > SPARES_HIGH ? record_get_locked() : NULL;
	}
	raw_spin_unlock(&ledger_lock);
	if (!record)
		return 0;

	event_kick();
	if (unlikely(excess))
		kmem_cache_free(record_cache, excess);
	return bytes;
}

/**
 * ledger_drop() - forget the records of a driver that is gone
 * @managed: nvidia-uvm's, otherwise nvidia's
 *
 * Context: may sleep; no hook of that driver is armed.
 * Return: how many there were.
 */
u64 ledger_drop(bool managed)
{
	struct record *record;
	struct hlist_node *next;
	unsigned int i;
	u64 dropped = 0;

	for (i = 0; i < 1U << record_hash_bits; i++) {
		HLIST_HEAD(gone);

		raw_spin_lock(&ledger_lock);
		hlist_for_each_entry_safe(record, next, &record_hash[i], hash) {
			if ((record->kind == RECORD_MANAGED) != managed)
				continue;
			record_remove_locked(record);
			hlist_add_head(&record->hash, &gone);
		}
		raw_spin_unlock(&ledger_lock);
		hlist_for_each_entry_safe(record, next, &gone, hash) {
			kmem_cache_free(record_cache, record);
			dropped++;
		}
		cond_resched();
	}
	event_kick();
	return dropped;
}

/**
 * ledger_init() - open the books
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int ledger_init(void)
{
	u64 memory = (u64)totalram_pages() << PAGE_SHIFT;
	int err;

	record_hash_bits = ilog2(clamp_t(u64, memory / BYTES_PER_BUCKET, SZ_4K, SZ_1M));
	record_hash = kvcalloc(1U << record_hash_bits, sizeof(*record_hash), GFP_KERNEL);
	record_cache = KMEM_CACHE(record, 0);
	if (!record_hash || !record_cache) {
		err = -ENOMEM;
		goto err;
	}
	err = account_init();
	if (err)
		goto err;
	stock_spares();
	return 0;
err:
	kmem_cache_destroy(record_cache);
	kvfree(record_hash);
	return err;
}

/**
 * ledger_exit() - close the books
 *
 * Context: module exit; every hook is disarmed and drained.
 */
void ledger_exit(void)
{
	struct record *record;

	ledger_drop(false);
	ledger_drop(true);
	event_exit();
	client_exit();
	account_exit();
	while ((record = record_get_locked()))
		kmem_cache_free(record_cache, record);
	kmem_cache_destroy(record_cache);
	kvfree(record_hash);
	/* Clients are freed by a function of ours. */
	rcu_barrier();
}
