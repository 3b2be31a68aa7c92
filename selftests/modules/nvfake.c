// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for an nvidia.ko of series 590 to 610, as far as page pools go: the functions
 * that umacct hooks there and does without nothing of, and pools that are made, and found
 * by the kernel, as that driver's are. A case gives it the driver's name.
 *
 * "blocks" says how many blocks of each order the first node's pools hold from the
 * beginning; while "hold" is set, whoever counts a pool waits, and with "slow" for 20 ms at
 * the least. Writing a number of pages
 * to the parameter "ask" asks for that many, as an ioctl would, and frees them; to "take", it
 * keeps them until another number is written there. They are counted, and there are none. Writing
 * "FUNCTION PAGES" to "work" calls a function that works for the machine, which asks for that many.
 */
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "nvfake.h"

#define NV_OK	0x00

struct pool {
	struct list_head blocks;
	int node;
	unsigned int order;
	unsigned long owned;
	struct mutex lock;
	struct shrinker *shrinker;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
	struct shrinker embedded;
#endif
};

struct pool *sysmem_page_pools[MAX_NUMNODES][ORDERS];

static unsigned long blocks[ORDERS];
module_param_array(blocks, ulong, NULL, 0444);

static bool hold;
module_param(hold, bool, 0644);

static bool slow;
module_param(slow, bool, 0444);

noinline __noclone u32 nv_alloc_pages(void *nv, u32 count, u64 page_size, u8 contiguous, u32 cache,
				      u8 zeroed, u8 unencrypted, s32 node, u64 *ptes, void **priv)
{
	u32 status = NV_OK;

	*priv = &sysmem_page_pools;
	/*
	 * Hides the value: from version 14 on, gcc assumes at the callers that this status is
	 * returned, and umacct may return another.
	 */
	OPTIMIZER_HIDE_VAR(status);
	return status;
}

noinline __noclone void nv_free_system_pages(void *at)
{
	barrier();
}

noinline __noclone void nv_free_contig_pages(void *at)
{
	barrier();
}

static void *ask(u32 count)
{
	void *priv;
	u32 status = nv_alloc_pages(NULL, count, PAGE_SIZE, 0, 0, 1, 0, NUMA_NO_NODE, NULL, &priv);

	return status == NV_OK ? priv : NULL;
}

static int ask_set(const char *text, const struct kernel_param *kp)
{
	void *priv;
	u32 count;
	int err = kstrtou32(text, 0, &count);

	if (err)
		return err;
	priv = ask(count);
	if (!priv)
		return -ENOMEM;
	nv_free_system_pages(priv);
	return 0;
}

static const struct kernel_param_ops ask_ops = { .set = ask_set };
module_param_cb(ask, &ask_ops, NULL, 0200);

static void *taken;

static void give_back(void)
{
	if (taken)
		nv_free_system_pages(taken);
	taken = NULL;
}

/* Parameters are written by one at a time. */
static int take_set(const char *text, const struct kernel_param *kp)
{
	u32 count;
	int err = kstrtou32(text, 0, &count);

	if (err)
		return err;
	give_back();
	if (!count)
		return 0;
	taken = ask(count);
	return taken ? 0 : -ENOMEM;
}

static const struct kernel_param_ops take_ops = { .set = take_set };
module_param_cb(take, &take_ops, NULL, 0200);

/* --- work for the machine --- */

static u32 work_pages;

static noinline int ask_for_work(void)
{
	void *priv = ask(work_pages);

	if (!priv)
		return -ENOMEM;
	nv_free_system_pages(priv);
	return 0;
}

/* Keeps the call before it from becoming a jump, which would hide the caller. */
static __always_inline int not_last(int err)
{
	OPTIMIZER_HIDE_VAR(err);
	return err;
}

noinline __noclone int rm_init_adapter(void)
{
	return not_last(ask_for_work());
}

noinline __noclone int nv_shutdown_adapter(void)
{
	return not_last(ask_for_work());
}

noinline __noclone int nv_set_system_power_state(void)
{
	return not_last(ask_for_work());
}

noinline __noclone int rm_power_management(void)
{
	return not_last(ask_for_work());
}

noinline __noclone int rm_transition_dynamic_power(void)
{
	return not_last(ask_for_work());
}

noinline __noclone int nvidia_modeset_suspend(void)
{
	return not_last(ask_for_work());
}

noinline __noclone int nvidia_modeset_resume(void)
{
	return not_last(ask_for_work());
}

static const struct {
	const char *name;
	int (*function)(void);
} works[] = {
	{ "rm_init_adapter", rm_init_adapter },
	{ "nv_shutdown_adapter", nv_shutdown_adapter },
	{ "nv_set_system_power_state", nv_set_system_power_state },
	{ "rm_power_management", rm_power_management },
	{ "rm_transition_dynamic_power", rm_transition_dynamic_power },
	{ "nvidia_modeset_suspend", nvidia_modeset_suspend },
	{ "nvidia_modeset_resume", nvidia_modeset_resume },
};

static int work_set(const char *text, const struct kernel_param *kp)
{
	char name[64];
	size_t i;

	if (sscanf(text, "%63s %u", name, &work_pages) != 2)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(works); i++)
		if (!strcmp(name, works[i].name))
			return works[i].function();
	return -ENOENT;
}

static const struct kernel_param_ops work_ops = { .set = work_set };
module_param_cb(work, &work_ops, NULL, 0200);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
static struct pool *pool_of(struct shrinker *shrinker)
{
	return shrinker->private_data;
}

static struct shrinker *new_shrinker(struct pool *pool)
{
	struct shrinker *shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "nvfake-%u", pool->order);

	if (shrinker)
		shrinker->private_data = pool;
	return shrinker;
}

static int add_shrinker(struct shrinker *shrinker)
{
	shrinker_register(shrinker);
	return 0;
}

static void remove_shrinker(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}
#else
static struct pool *pool_of(struct shrinker *shrinker)
{
	return container_of(shrinker, struct pool, embedded);
}

static struct shrinker *new_shrinker(struct pool *pool)
{
	pool->embedded.flags = SHRINKER_NUMA_AWARE;
	return &pool->embedded;
}

static int add_shrinker(struct shrinker *shrinker)
{
	return register_shrinker(shrinker, "nvfake");
}

static void remove_shrinker(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
}
#endif

static unsigned long nv_mem_pool_shrinker_count(struct shrinker *shrinker,
						struct shrink_control *sc)
{
	struct pool *pool = pool_of(shrinker);
	unsigned long owned;

	if (sc->nid != pool->node)
		return SHRINK_EMPTY;
	if (slow)
		msleep(20);
	while (READ_ONCE(hold))
		msleep(20);
	mutex_lock(&pool->lock);
	owned = pool->owned;
	mutex_unlock(&pool->lock);
	return owned ?: SHRINK_EMPTY;
}

static unsigned long nv_mem_pool_shrinker_scan(struct shrinker *shrinker,
					       struct shrink_control *sc)
{
	struct pool *pool = pool_of(shrinker);
	unsigned long done = 0;

	if (sc->nid != pool->node)
		return SHRINK_STOP;
	mutex_lock(&pool->lock);
	while (done < sc->nr_to_scan && !list_empty(&pool->blocks)) {
		struct page *page = list_first_entry(&pool->blocks, struct page, lru);

		list_del(&page->lru);
		__free_pages(page, pool->order);
		pool->owned--;
		done++;
	}
	mutex_unlock(&pool->lock);
	return done ?: SHRINK_STOP;
}

static void free_pool(struct pool *pool)
{
	struct shrink_control all = { .nid = pool->node, .nr_to_scan = ULONG_MAX };

	nv_mem_pool_shrinker_scan(pool->shrinker, &all);
	remove_shrinker(pool->shrinker);
	/* Whoever comes too late shall not find it as it was. */
	memset(pool, 0x6b, sizeof(*pool));
	kfree(pool);
}

static struct pool *new_pool(int node, unsigned int order)
{
	struct pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	unsigned long left = node == first_node(node_possible_map) ? blocks[order] : 0;

	if (!pool)
		return NULL;
	INIT_LIST_HEAD(&pool->blocks);
	mutex_init(&pool->lock);
	pool->node = node;
	pool->order = order;
	pool->shrinker = new_shrinker(pool);
	if (!pool->shrinker)
		goto err;
	pool->shrinker->count_objects = nv_mem_pool_shrinker_count;
	pool->shrinker->scan_objects = nv_mem_pool_shrinker_scan;
	pool->shrinker->seeks = 1;
	if (add_shrinker(pool->shrinker))
		goto err;
	for (; left; left--) {
		struct page *page = alloc_pages(GFP_KERNEL, order);

		if (!page)
			break;
		list_add(&page->lru, &pool->blocks);
		pool->owned++;
	}
	return pool;
err:
	kfree(pool);
	return NULL;
}

static void nvfake_exit(void)
{
	unsigned int order;
	int node;

	give_back();
	for_each_node(node)
		for (order = 0; order < ORDERS; order++)
			if (sysmem_page_pools[node][order])
				free_pool(sysmem_page_pools[node][order]);
}

static int __init nvfake_init(void)
{
	unsigned int order;
	int node;

	/* The driver has pools of 4 KiB, 64 KiB and 2 MiB. */
	for_each_node(node) {
		for (order = 0; order < ORDERS; order++) {
			if (order && order != 4 && order != 9)
				continue;
			sysmem_page_pools[node][order] = new_pool(node, order);
			if (!sysmem_page_pools[node][order]) {
				nvfake_exit();
				return -ENOMEM;
			}
		}
	}
	return 0;
}

module_init(nvfake_init);
module_exit(nvfake_exit);
MODULE_DESCRIPTION("A driver that is nothing but page pools, for umacct's tests");
MODULE_LICENSE("GPL");
MODULE_VERSION("595.0");
