// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvidia-uvm's VA spaces: what each costs, and whom its threads work for.
 *
 * A GPU's faults are served by threads of nvidia-uvm's. For a VA space that several processes
 * share there is no address space to charge, and the driver charges nobody: then they work for
 * the cgroup of the process that made the VA space.
 *
 * A VA space keeps the memory cgroup of its maker, as a page does that is charged to it.
 *
 * Groups of ranges are small, and as many as a client asks for, and so is what the driver keeps of
 * each range of addresses that is in one. Both are counted for a VA space in lots, each of which is
 * as large as those before it together. How many such ranges there are nobody tells: of each
 * assignment as many are taken to be new as could be, and where a lot is used up by that, they are
 * counted.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "hooks/bounds.h"
#include "hooks/call.h"
#include "hooks/metadata.h"
#include "hooks/nv_status.h"
#include "hooks/va_space.h"
#include "ledger/allocation.h"
#include "ledger/ledger.h"
#include "memcg.h"

#define UVM_LAYOUTS	(LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4)

/* A process has one, rarely several. */
#define MAKER_BITS	8

DECLARE_REDIRECT(u32, va_space_create, (void *mapping, void **va_space, u64 flags));
DECLARE_REDIRECT(void, va_space_destroy, (void *va_space));
DECLARE_REDIRECT(u32, create_group, (void *params, struct file *file));
DECLARE_REDIRECT(u32, destroy_group, (void *params, struct file *file));
DECLARE_REDIRECT(u32, assign_range, (void *va_space, void *group, u64 start, u64 end));
DECLARE_ORIGINAL(void *, first_assigned, (void *va_space, u64 start, u64 end));
DECLARE_ORIGINAL(void *, next_assigned, (void *va_space, void *range, u64 end));
DECLARE_REDIRECT(u32, service_block,
		 (unsigned long processor, void *block, void *retry, void *context));
DECLARE_ORIGINAL(void *, block_va_space, (void *block));

/**
 * struct maker - who made a VA space
 * @node: in its bucket
 * @by_mapping: in that of its @mapping
 * @va_space: the driver's
 * @mapping: of its open file, which has one of its own
 * @memcg: what memory of it is charged to; referenced
 * @groups: how many groups of ranges it has
 * @ranges: how many ranges of addresses are in them, at the most; changed with the VA space's
 *	lock of the driver's held
 * @group_lots: how many lots of them are counted; guarded by lots_lock
 * @group_records: each lot is recorded under an address of its own, here
 */
struct maker {
	struct hlist_node node;
	struct hlist_node by_mapping;
	const void *va_space;
	const void *mapping;
	struct mem_cgroup *memcg;
	atomic_t groups;
	unsigned int ranges;
	unsigned int group_lots;
	char group_records[GROUP_LOTS];
};

static struct hlist_head makers[1 << MAKER_BITS];
static struct hlist_head makers_by_mapping[1 << MAKER_BITS];
static DEFINE_RAW_SPINLOCK(makers_lock);
static DEFINE_MUTEX(lots_lock);

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

static void add(struct maker *maker, const void *va_space, const void *mapping)
{
	maker->va_space = va_space;
	maker->mapping = mapping;
	maker->memcg = umacct_memcg_get_current();
	raw_spin_lock(&makers_lock);
	hlist_add_head(&maker->node, bucket_of(va_space));
	hlist_add_head(&maker->by_mapping, &makers_by_mapping[hash_ptr(mapping, MAKER_BITS)]);
	raw_spin_unlock(&makers_lock);
}

static void free_maker(struct maker *maker)
{
	unsigned int i;

	if (!maker)
		return;
	for (i = 0; i < maker->group_lots; i++)
		umacct_ledger_settle(umacct_ledger_take((unsigned long)&maker->group_records[i]));
	memcg_put(maker->memcg);
	kfree(maker);
}

static void unlist_locked(struct maker *maker)
{
	hlist_del(&maker->node);
	hlist_del(&maker->by_mapping);
}

static void forget(const void *va_space)
{
	struct maker *maker;

	raw_spin_lock(&makers_lock);
	maker = find_locked(va_space);
	if (maker)
		unlist_locked(maker);
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

u32 umacct_replace_va_space_create(void *mapping, void **va_space, u64 flags)
{
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;
	struct maker *maker;
	u64 bytes;

	probe_enter(&umacct_hook_va_space_create.probe);
	maker = kzalloc(sizeof(*maker), GFP_KERNEL_ACCOUNT);
	bytes = driver_profile(HOOK_UVM)->sizes.va_space;
	if (maker && umacct_metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = umacct_original_va_space_create(mapping, va_space, flags);
		ledger_end(&alloc, status == NV_OK,
			   status == NV_OK ? metadata_object(*va_space) : 0, false);
		if (status == NV_OK) {
			add(maker, *va_space, mapping);
			maker = NULL;
		}
	}
	kfree(maker);
	probe_leave(&umacct_hook_va_space_create.probe);
	return status;
}

void umacct_replace_va_space_destroy(void *va_space)
{
	struct record *record;

	probe_enter(&umacct_hook_va_space_destroy.probe);
	record = umacct_ledger_take(metadata_object(va_space));
	forget(va_space);
	umacct_original_va_space_destroy(va_space);
	umacct_ledger_settle(record);
	probe_leave(&umacct_hook_va_space_destroy.probe);
}

/* The VA space of an open file, which stays as long as the file; NULL if it isn't known. */
static struct maker *maker_of(const struct file *file)
{
	const void *mapping = file->f_mapping;
	struct maker *maker, *found = NULL;

	raw_spin_lock(&makers_lock);
	hlist_for_each_entry(maker, &makers_by_mapping[hash_ptr(mapping, MAKER_BITS)], by_mapping)
		if (maker->mapping == mapping)
			found = maker;
	raw_spin_unlock(&makers_lock);
	return found;
}

/* Counts another lot, if the groups that there are now need it. */
static bool count_groups(struct maker *maker, unsigned int groups)
{
	const u64 size = driver_profile(HOOK_UVM)->sizes.group;
	struct allocation alloc;
	bool fits = true;
	unsigned int lot;

	/* Nobody waits for another's lot where there is room. */
	if (groups <= groups_in(READ_ONCE(maker->group_lots)))
		return true;
	mutex_lock(&lots_lock);
	while (fits && groups > groups_in(maker->group_lots)) {
		lot = maker->group_lots;
		fits = lot < GROUP_LOTS &&
		       umacct_metadata_begin(&alloc, HOOK_UVM,
					     (groups_in(lot + 1) - groups_in(lot)) * size);
		if (fits) {
			ledger_end(&alloc, true, (unsigned long)&maker->group_records[lot], false);
			WRITE_ONCE(maker->group_lots, lot + 1);
		}
	}
	mutex_unlock(&lots_lock);
	return fits;
}

static unsigned int groups_and_ranges(const struct maker *maker)
{
	return atomic_read(&maker->groups) + READ_ONCE(maker->ranges);
}

/* The VA space's lock is held. */
static unsigned int count_assigned(void *va_space)
{
	void *range = umacct_original_first_assigned(va_space, 0, U64_MAX);
	unsigned int count = 0;

	while (range) {
		count++;
		range = umacct_original_next_assigned(va_space, range, U64_MAX);
	}
	return count;
}

/*
 * Counts all ranges and takes room for twice as many, so that not every assignment counts them all.
 * Where a limit refuses that, it takes just enough.
 */
static bool count_assignment(struct maker *maker, void *va_space)
{
	WRITE_ONCE(maker->ranges, maker->ranges + RANGES_ASSIGNED);
	if (groups_and_ranges(maker) <= groups_in(READ_ONCE(maker->group_lots)))
		return true;
	WRITE_ONCE(maker->ranges, count_assigned(va_space) + RANGES_ASSIGNED);
	return count_groups(maker, 2 * groups_and_ranges(maker)) ||
	       count_groups(maker, groups_and_ranges(maker));
}

/* A range that goes is taken out of its group, and that can't fail. */
static bool may_fail(void)
{
	const struct call *call = call_current();

	return !call || !call->destroying;
}

/*
 * uvm_range_group_assign_range(), with the VA space's lock held: as long as that, the VA space
 * stays.
 */
u32 umacct_replace_assign_range(void *va_space, void *group, u64 start, u64 end)
{
	u32 status = NV_ERR_NO_MEMORY;
	struct maker *maker;

	probe_enter(&umacct_hook_assign_range.probe);
	raw_spin_lock(&makers_lock);
	maker = find_locked(va_space);
	raw_spin_unlock(&makers_lock);
	if (!maker || count_assignment(maker, va_space) || !may_fail())
		status = umacct_original_assign_range(va_space, group, start, end);
	probe_leave(&umacct_hook_assign_range.probe);
	return status;
}

u32 umacct_replace_create_group(void *params, struct file *file)
{
	u32 status = NV_ERR_NO_MEMORY;
	struct maker *maker;

	probe_enter(&umacct_hook_create_group.probe);
	maker = maker_of(file);
	if (maker)
		atomic_inc(&maker->groups);
	if (!maker || count_groups(maker, groups_and_ranges(maker)))
		status = umacct_original_create_group(params, file);
	if (maker && status != NV_OK)
		atomic_dec(&maker->groups);
	probe_leave(&umacct_hook_create_group.probe);
	return status;
}

u32 umacct_replace_destroy_group(void *params, struct file *file)
{
	struct maker *maker;
	u32 status;

	probe_enter(&umacct_hook_destroy_group.probe);
	maker = maker_of(file);
	status = umacct_original_destroy_group(params, file);
	/* What was made before umacct came is not counted. */
	if (maker && status == NV_OK)
		atomic_dec_if_positive(&maker->groups);
	probe_leave(&umacct_hook_destroy_group.probe);
	return status;
}

/* uvm_va_block_service_locked(): where every fault gets to that needs memory. */
u32 umacct_replace_service_block(unsigned long processor, void *block, void *retry, void *context)
{
	struct mem_cgroup *memcg = NULL;
	u32 status;

	probe_enter(&umacct_hook_service_block.probe);
	if (unlikely(current->flags & PF_KTHREAD) && !memcg_active())
		memcg = memcg_of(umacct_original_block_va_space(block));
	if (memcg)
		memcg_set_active(memcg);
	status = umacct_original_service_block(processor, block, retry, context);
	if (memcg) {
		memcg_set_active(NULL);
		memcg_put(memcg);
	}
	probe_leave(&umacct_hook_service_block.probe);
	return status;
}

/**
 * umacct_va_space_forget() - forget all VA spaces: the driver is gone, or no longer followed
 *
 * Context: may sleep; no hook here is armed.
 */
void umacct_va_space_forget(void)
{
	struct hlist_node *next;
	struct maker *maker;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(makers); i++) {
		hlist_for_each_entry_safe(maker, next, &makers[i], node) {
			unlist_locked(maker);
			free_maker(maker);
		}
	}
}

struct hook umacct_hook_va_space_create = {
	.name = "make VA space",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_space_create",
		REDIRECT(va_space_create),
	},
};

struct hook umacct_hook_va_space_destroy = {
	.name = "remove VA space",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_space_destroy",
		REDIRECT(va_space_destroy),
	},
};

struct hook umacct_hook_create_group = {
	.name = "make range group",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_api_create_range_group",
		REDIRECT(create_group),
	},
};

struct hook umacct_hook_destroy_group = {
	.name = "remove range group",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.probe = {
		.symbol = "nvidia_uvm:uvm_api_destroy_range_group",
		REDIRECT(destroy_group),
	},
};

struct hook umacct_hook_assign_range = {
	.name = "assign to range group",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.calls = {
		{
			.symbol = "nvidia_uvm:uvm_range_group_range_iter_first",
			.entry = &umacct_original_first_assigned_entry,
		},
		{
			.symbol = "nvidia_uvm:uvm_range_group_range_iter_next",
			.entry = &umacct_original_next_assigned_entry,
		},
	},
	.probe = {
		.symbol = "nvidia_uvm:uvm_range_group_assign_range",
		REDIRECT(assign_range),
	},
};

struct hook umacct_hook_service_block = {
	.name = "serve fault",
	.module = HOOK_UVM,
	.layouts = UVM_LAYOUTS,
	.limits = true,
	.calls = { {
		.symbol = "nvidia_uvm:uvm_va_block_get_va_space",
		.entry = &umacct_original_block_va_space_entry,
	} },
	.probe = {
		.symbol = "nvidia_uvm:uvm_va_block_service_locked",
		REDIRECT(service_block),
	},
};
