// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvidia-uvm's VA spaces: what each costs, and whom its threads work for.
 *
 * A GPU's faults are served by threads of nvidia-uvm's. For a VA space that several processes
 * share there is no address space to charge, and the driver charges nobody: then they work for
 * the cgroup of the process that made the VA space.
 *
 * A VA space keeps the memory cgroup of its maker, as a page does that is charged to it.
 */
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "hooks/metadata.h"
#include "hooks/status.h"
#include "hooks/va_space.h"
#include "ledger/allocation.h"
#include "ledger/ledger.h"
#include "memcg.h"

#define UVM_LAYOUTS	(LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4)

/* A process has one, rarely several. */
#define MAKER_BITS	8

DECLARE_REDIRECT(u32, va_space_create, (void *mapping, void **va_space, u64 flags));
DECLARE_REDIRECT(void, va_space_destroy, (void *va_space));
DECLARE_REDIRECT(u32, service_block,
		 (unsigned long processor, void *block, void *retry, void *context));
DECLARE_ORIGINAL(void *, block_va_space, (void *block));

/**
 * struct maker - who made a VA space
 * @node: in its bucket
 * @va_space: the driver's
 * @memcg: what memory of it is charged to; referenced
 */
struct maker {
	struct hlist_node node;
	const void *va_space;
	struct mem_cgroup *memcg;
};

static struct hlist_head makers[1 << MAKER_BITS];
static DEFINE_RAW_SPINLOCK(makers_lock);

static struct hlist_head *bucket_of(const void *va_space)
{
	return &makers[hash_ptr(va_space, MAKER_BITS)];
}

static struct maker *find_locked(const void *va_space)
{
	struct maker *maker;

	lockdep_assert_held(&makers_lock);
	hlist_for_each_entry(maker, bucket_of(va_space), node)
		if (maker->va_space == va_space)
			return maker;
	return NULL;
}

static void add(struct maker *maker, const void *va_space)
{
	maker->va_space = va_space;
	maker->memcg = memcg_get_current();
	raw_spin_lock(&makers_lock);
	hlist_add_head(&maker->node, bucket_of(va_space));
	raw_spin_unlock(&makers_lock);
}

static void free_maker(struct maker *maker)
{
	if (!maker)
		return;
	memcg_put(maker->memcg);
	kfree(maker);
}

static void forget(const void *va_space)
{
	struct maker *maker;

	raw_spin_lock(&makers_lock);
	maker = find_locked(va_space);
	if (maker)
		hlist_del(&maker->node);
	raw_spin_unlock(&makers_lock);
	free_maker(maker);
}

/* With a reference; NULL if it isn't known. */
static struct mem_cgroup *memcg_of(const void *va_space)
{
	struct mem_cgroup *memcg = NULL;
	struct maker *maker;

	raw_spin_lock(&makers_lock);
	maker = find_locked(va_space);
	if (maker)
		memcg = memcg_get(maker->memcg);
	raw_spin_unlock(&makers_lock);
	return memcg;
}

u32 replace_va_space_create(void *mapping, void **va_space, u64 flags)
{
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	struct maker *maker;
	u64 bytes;

	probe_enter(&hook_va_space_create.probe);
	maker = kzalloc(sizeof(*maker), GFP_KERNEL_ACCOUNT);
	bytes = driver_profile(HOOK_UVM)->sizes.va_space;
	if (maker && metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = original_va_space_create(mapping, va_space, flags);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? metadata_object(*va_space) : 0, false);
		if (status == NV_OK) {
			add(maker, *va_space);
			maker = NULL;
		}
	}
	kfree(maker);
	probe_leave(&hook_va_space_create.probe);
	return status;
}

void replace_va_space_destroy(void *va_space)
{
	struct record *record;

	probe_enter(&hook_va_space_destroy.probe);
	record = ledger_take(metadata_object(va_space));
	forget(va_space);
	original_va_space_destroy(va_space);
	ledger_settle(record);
	probe_leave(&hook_va_space_destroy.probe);
}

/* uvm_va_block_service_locked(): where every fault gets to that needs memory. */
u32 replace_service_block(unsigned long processor, void *block, void *retry, void *context)
{
	struct mem_cgroup *memcg = NULL;
	u32 status;

	probe_enter(&hook_service_block.probe);
	if (unlikely(current->flags & PF_KTHREAD) && !memcg_active())
		memcg = memcg_of(original_block_va_space(block));
	if (memcg)
		memcg_set_active(memcg);
	status = original_service_block(processor, block, retry, context);
	if (memcg) {
		memcg_set_active(NULL);
		memcg_put(memcg);
	}
	probe_leave(&hook_service_block.probe);
	return status;
}

/**
 * va_space_forget() - forget all VA spaces: the driver is gone, or no longer followed
 *
 * Context: may sleep; no hook here is armed.
 */
void va_space_forget(void)
{
	struct hlist_node *next;
	struct maker *maker;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(makers); i++) {
		hlist_for_each_entry_safe(maker, next, &makers[i], node) {
			hlist_del(&maker->node);
			free_maker(maker);
		}
	}
}

struct hook hook_va_space_create = {
	.name = "make VA space",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_space_create",
		REDIRECT(va_space_create),
	},
};

struct hook hook_va_space_destroy = {
	.name = "remove VA space",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_space_destroy",
		REDIRECT(va_space_destroy),
	},
};

struct hook hook_service_block = {
	.name = "serve fault",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.calls = "nvidia_uvm:uvm_va_block_get_va_space",
	.calls_entry = &original_block_va_space_entry,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_block_service_locked",
		REDIRECT(service_block),
	},
};
