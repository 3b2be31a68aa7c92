// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's page pools (590 and later): freed pages that it keeps for its next
 * allocations, one pool for each NUMA node and size of block.
 *
 * A pool has a shrinker, by which the kernel gets memory back from it; what a pool holds
 * is asked, and taken out, in the same way. Nothing of the driver's structures is known
 * here: a pool points to its shrinker, and that is known by the function that it counts
 * with. What can't be found that way isn't known, and no figure stands in for it.
 *
 * The driver destroys its pools when it goes, before any notifier of modules: a task that
 * asks keeps it from going meanwhile. While the driver has no user, so that it could go, it
 * is asked once a second at the most: a program that reads in a loop doesn't keep it.
 */
#include <linux/elf.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/shrinker.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "pools.h"

/* struct nv_page_pool *sysmem_page_pools[MAX_NUMNODES][one for each order] */
#define POOLS	"sysmem_page_pools"
/* Its count is in blocks of the pool's order. */
#define COUNT	"nv_mem_pool_shrinker_count"

/* The driver's structure is about half of that. */
#define POOL_WORDS	64

/* Blocks that are taken out before another task may run, or use the pool. */
#define RECLAIM_BATCH	128

typedef unsigned long (*count_fn)(struct shrinker *shrinker, struct shrink_control *sc);

/*
 * Changed under umacct_hook_lock() while @driver is NULL; a task that has got a reference to
 * the driver may read it. @unknown: there are pools, or there may be, and no driver to ask.
 */
static struct {
	struct module __rcu *driver;
	bool unknown;
	void **array;
	unsigned int orders;
	count_fn count;
	unsigned int shrinker_word;
} pools;

/* The last answer, used while no program uses the driver; guarded by its lock. */
static struct {
	spinlock_t lock;
	bool valid;
	bool known;
	u64 bytes;
	unsigned long ask_again;
	int asking;		/* tasks; each has a reference on the driver */
} last_answer = {
	.lock = __SPIN_LOCK_UNLOCKED(last_answer.lock),
};

#define ASK_AGAIN	HZ

/* kallsyms knows data by name only for itself. */
static const Elf_Sym *find_symbol(const struct mod_kallsyms *table, const char *name)
{
	unsigned int i;

	for (i = 0; i < table->num_symtab; i++)
		if (table->symtab[i].st_shndx != SHN_UNDEF &&
		    !strcmp(table->strtab + table->symtab[i].st_name, name))
			return &table->symtab[i];
	return NULL;
}

/* Return: false if there is no sign of pools. */
static bool find_pools(const struct module *driver)
{
	const size_t per_order = MAX_NUMNODES * sizeof(*pools.array);
	const struct mod_kallsyms *table;
	const Elf_Sym *array, *count;
	bool any;

	pools.count = NULL;
	rcu_read_lock();
	table = rcu_dereference(driver->kallsyms);
	array = find_symbol(table, POOLS);
	count = find_symbol(table, COUNT);
	any = array || count;
	if (array && count && array->st_size && !(array->st_size % per_order)) {
		pools.array = (void **)array->st_value;
		pools.orders = array->st_size / per_order;
		pools.count = (count_fn)count->st_value;
	}
	rcu_read_unlock();
	return any;
}

static void forget_answer(void)
{
	spin_lock(&last_answer.lock);
	last_answer.valid = false;
	spin_unlock(&last_answer.lock);
}

static void keep_answer(bool known, u64 bytes)
{
	spin_lock(&last_answer.lock);
	last_answer.valid = true;
	last_answer.known = known;
	last_answer.bytes = bytes;
	last_answer.ask_again = jiffies + ASK_AGAIN;
	spin_unlock(&last_answer.lock);
}

/* Could the driver go if it weren't asked? Where modules stay, it can't. */
static bool driver_is_idle(void)
{
	bool idle = false;
#ifdef CONFIG_MODULE_UNLOAD
	struct module *driver;

	rcu_read_lock();
	driver = rcu_dereference(pools.driver);
	if (driver) {
		spin_lock(&last_answer.lock);
		idle = module_refcount(driver) == last_answer.asking;
		spin_unlock(&last_answer.lock);
	}
	rcu_read_unlock();
#endif
	return idle;
}

/* Return: false if the driver is to be asked. One asks for all who come meanwhile. */
static bool answered(bool *known, u64 *bytes)
{
	bool done;

	spin_lock(&last_answer.lock);
	done = last_answer.valid && time_before(jiffies, last_answer.ask_again);
	*known = last_answer.known;
	*bytes = last_answer.bytes;
	if (!done)
		last_answer.ask_again = jiffies + ASK_AGAIN;
	spin_unlock(&last_answer.lock);
	return done;
}

/*
 * A driver is there, or NULL if its behaviour isn't known; its series has pools if @expected. Under
 * umacct_hook_lock().
 */
void umacct_pools_attach(struct module *driver, bool expected)
{
	bool any = !driver || find_pools(driver);

	forget_answer();
	if (driver && pools.count)
		rcu_assign_pointer(pools.driver, driver);
	else
		WRITE_ONCE(pools.unknown, any || expected);
}

/*
 * The driver is gone, or not followed any more. Under umacct_hook_lock(), before its structure is
 * freed.
 */
void umacct_pools_detach(void)
{
	RCU_INIT_POINTER(pools.driver, NULL);
	WRITE_ONCE(pools.unknown, false);
	forget_answer();
}

/*
 * Only a driver that is LIVE stays for a reference: one whose initialisation fails
 * doesn't wait.
 */
static struct module *get_driver(void)
{
	struct module *driver;

	rcu_read_lock();
	driver = rcu_dereference(pools.driver);
	if (driver) {
		spin_lock(&last_answer.lock);
		if (READ_ONCE(driver->state) != MODULE_STATE_LIVE || !try_module_get(driver))
			driver = NULL;
		else
			last_answer.asking++;
		spin_unlock(&last_answer.lock);
	}
	rcu_read_unlock();
	return driver;
}

static void put_driver(struct module *driver)
{
	spin_lock(&last_answer.lock);
	last_answer.asking--;
	module_put(driver);
	spin_unlock(&last_answer.lock);
}

static struct shrinker *shrinker_at(void **pool, unsigned int word)
{
	struct shrinker *shrinker;
	count_fn count;

	if (get_kernel_nofault(shrinker, (struct shrinker **)pool + word) ||
	    !virt_addr_valid(shrinker) ||
	    get_kernel_nofault(count, &shrinker->count_objects) || count != pools.count)
		return NULL;
	return shrinker;
}

/* It is in the same place of every pool. */
static struct shrinker *shrinker_of(void **pool)
{
	struct shrinker *shrinker = shrinker_at(pool, READ_ONCE(pools.shrinker_word));
	unsigned int word;

	for (word = 0; !shrinker && word < POOL_WORDS; word++) {
		shrinker = shrinker_at(pool, word);
		if (shrinker)
			WRITE_ONCE(pools.shrinker_word, word);
	}
	return shrinker;
}

static unsigned long count_blocks(struct shrinker *shrinker, int node)
{
	struct shrink_control sc = { .gfp_mask = GFP_KERNEL, .nid = node };
	unsigned long blocks = shrinker->count_objects(shrinker, &sc);

	return blocks == SHRINK_EMPTY ? 0 : blocks;
}

/* No more than what is there now: what is freed meanwhile may stay. */
static unsigned long reclaim_blocks(struct shrinker *shrinker, int node)
{
	unsigned long left = count_blocks(shrinker, node), done = 0;

	while (left && !fatal_signal_pending(current)) {
		struct shrink_control sc = {
			.gfp_mask = GFP_KERNEL,
			.nid = node,
			.nr_to_scan = min_t(unsigned long, left, RECLAIM_BATCH),
		};
		unsigned long freed = shrinker->scan_objects(shrinker, &sc);

		if (!freed || freed == SHRINK_STOP)
			break;
		done += freed;
		left -= min(left, freed);
		cond_resched();
	}
	return done;
}

/* Return: false if it isn't known; otherwise @bytes is what all pools together answer. */
static bool ask_pools(unsigned long (*ask)(struct shrinker *shrinker, int node), u64 *bytes)
{
	struct shrinker *shrinker;
	unsigned int order;
	void **pool;
	int node;

	*bytes = 0;
	for_each_node(node) {
		for (order = 0; order < pools.orders; order++) {
			pool = READ_ONCE(pools.array[node * pools.orders + order]);
			if (!pool)
				continue;
			shrinker = shrinker_of(pool);
			if (!shrinker)
				return false;
			*bytes += (u64)ask(shrinker, node) << (order + PAGE_SHIFT);
		}
	}
	return true;
}

static bool ask(unsigned long (*what)(struct shrinker *shrinker, int node), u64 *bytes)
{
	struct module *driver;
	bool known;

	*bytes = 0;
	if (likely(!rcu_access_pointer(pools.driver)))
		return !READ_ONCE(pools.unknown);
	driver = get_driver();
	if (!driver)
		return false;
	known = ask_pools(what, bytes);
	put_driver(driver);
	return known;
}

/*
 * Sets @bytes to what the driver's pools hold, 0 where there are none, or returns false if it isn't
 * known. While these readers are the driver's only users, it may be a second old. May sleep.
 */
bool umacct_pools_read(u64 *bytes)
{
	bool known;

	if (likely(!driver_is_idle()))
		return ask(count_blocks, bytes);
	if (answered(&known, bytes))
		return known;
	known = ask(count_blocks, bytes);
	keep_answer(known, *bytes);
	return known;
}

/*
 * Gives back to the kernel what the driver's pools hold, and sets @bytes to how much that was.
 * Returns false if the driver can't be asked for it. May sleep; a fatal signal ends it early.
 */
bool umacct_pools_reclaim(u64 *bytes)
{
	bool known = ask(reclaim_blocks, bytes);

	forget_answer();
	return known;
}
