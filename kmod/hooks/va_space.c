// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvidia-uvm's VA spaces: the cost of each, and the process that its threads work for.
 *
 * A GPU's faults are served by threads of nvidia-uvm's, for the process that made the VA space. For
 * one that several processes share there is no address space to charge, and the driver charges none:
 * then the cgroup of that process pays.
 *
 * A VA space keeps the memory cgroup of its maker, as a page does that is charged to it.
 *
 * Groups of ranges are small, and as many as a client asks for, and so is what the driver keeps of
 * each range of addresses that is in one. Both are counted for a VA space in lots, each of which is
 * as large as those before it together. The number of such ranges is not known: of each
 * assignment as many are taken to be new as could be, and where a lot is used up by that, they are
 * counted.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "hooks/call.h"
#include "hooks/metadata.h"
#include "hooks/nv_status.h"
#include "hooks/way_out.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/record.h"
#include "memcg.h"

/* A process has one, rarely several. */
#define VA_SPACE_BITS	8

/* Groups of ranges, and ranges in them, in the first lot, and how many lots there can be. */
#define GROUPS_IN_LOT	64
#define GROUP_LOTS	32

/* Ranges that one assignment can add: the new one, and the rest of a range that it splits. */
#define RANGES_ASSIGNED	2

/**
 * struct va_space - who made a VA space
 * @node: in its bucket
 * @by_mapping: in that of its @mapping
 * @va_space: the driver's
 * @mapping: of its open file, which has one of its own
 * @memcg: what memory of it is charged to; referenced
 * @process: who it is; referenced
 * @groups: how many groups of ranges it has
 * @ranges: how many ranges of addresses are in them, at the most; changed with the VA space's
 *	lock of the driver's held
 * @lots_lock: held while a lot is taken, which may sleep
 * @group_lots: how many lots of them are counted; guarded by @lots_lock
 * @group_records: each lot is recorded under an address of its own, here
 */
struct va_space {
	struct hlist_node node;
	struct hlist_node by_mapping;
	const void *va_space;
	const void *mapping;
	struct mem_cgroup *memcg;
	struct pid *process;
	atomic_t groups;
	unsigned int ranges;
	struct mutex lots_lock;
	unsigned int group_lots;
	char group_records[GROUP_LOTS];
};

static struct hlist_head spaces[1 << VA_SPACE_BITS];
static struct hlist_head spaces_by_mapping[1 << VA_SPACE_BITS];
static DEFINE_RAW_SPINLOCK(spaces_lock);

static struct hlist_head *bucket_of(const void *va_space)
{
	return &spaces[hash_ptr(va_space, VA_SPACE_BITS)];
}

static struct va_space *find_locked(const void *va_space)
{
	struct va_space *space;

	lockdep_assert_held(&spaces_lock);
	hlist_for_each_entry(space, bucket_of(va_space), node)
		if (space->va_space == va_space)
			return space;
	return NULL;
}

static void add(struct va_space *space, const void *va_space, const void *mapping)
{
	space->va_space = va_space;
	space->mapping = mapping;
	mutex_init(&space->lots_lock);
	space->memcg = umacct_memcg_get_current();
	space->process = get_pid(task_tgid(current));
	raw_spin_lock(&spaces_lock);
	hlist_add_head(&space->node, bucket_of(va_space));
	hlist_add_head(&space->by_mapping, &spaces_by_mapping[hash_ptr(mapping, VA_SPACE_BITS)]);
	raw_spin_unlock(&spaces_lock);
}

static void va_space_free(struct va_space *space)
{
	unsigned int i;

	if (!space)
		return;
	for (i = 0; i < space->group_lots; i++)
		umacct_record_settle(umacct_record_take((unsigned long)&space->group_records[i]));
	memcg_put(space->memcg);
	put_pid(space->process);
	kfree(space);
}

static void unlist_locked(struct va_space *space)
{
	hlist_del(&space->node);
	hlist_del(&space->by_mapping);
}

static void forget(const void *va_space)
{
	struct va_space *space;

	raw_spin_lock(&spaces_lock);
	space = find_locked(va_space);
	if (space)
		unlist_locked(space);
	raw_spin_unlock(&spaces_lock);
	va_space_free(space);
}

u32 umacct_replace_va_space_create(void *mapping, void **va_space, u64 flags)
{
	INSIDE(va_space_create);
	struct va_space *space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	const u64 bytes = driver_profile(HOOK_UVM)->sizes.va_space;
	u32 status = NV_ERR_NO_MEMORY;
	struct allocation alloc;

	if (space && umacct_metadata_begin(&alloc, HOOK_UVM, bytes)) {
		status = umacct_original_va_space_create(mapping, va_space, flags);
		metadata_end(&alloc, status, *va_space);
	}
	if (status == NV_OK)
		add(space, *va_space, mapping);
	else
		kfree(space);
	return status;
}

void umacct_replace_va_space_destroy(void *va_space)
{
	INSIDE(va_space_destroy);
	struct record *record = umacct_record_take(metadata_object(va_space));

	forget(va_space);
	umacct_original_va_space_destroy(va_space);
	umacct_record_settle(record);
}

/* The VA space of an open file, which stays as long as the file; NULL if it isn't known. */
static struct va_space *va_space_of(const struct file *file)
{
	const void *mapping = file->f_mapping;
	struct va_space *space, *found = NULL;

	raw_spin_lock(&spaces_lock);
	hlist_for_each_entry(space, &spaces_by_mapping[hash_ptr(mapping, VA_SPACE_BITS)], by_mapping)
		if (space->mapping == mapping)
			found = space;
	raw_spin_unlock(&spaces_lock);
	return found;
}

/* Number of groups that fit into that many lots. */
static u64 groups_in(unsigned int lots)
{
	return lots ? (u64)GROUPS_IN_LOT << (lots - 1) : 0;
}

/* Counts another lot, if the groups that there are now need it. */
static bool count_groups(struct va_space *space, unsigned int groups)
{
	const u64 size = driver_profile(HOOK_UVM)->sizes.group;
	struct allocation alloc;
	bool fits = true;
	unsigned int lot;

	/* A task only waits for another's lot if there is no room. */
	if (groups <= groups_in(READ_ONCE(space->group_lots)))
		return true;
	mutex_lock(&space->lots_lock);
	while (fits && groups > groups_in(space->group_lots)) {
		lot = space->group_lots;
		fits = lot < GROUP_LOTS &&
		       umacct_metadata_begin(&alloc, HOOK_UVM,
					     (groups_in(lot + 1) - groups_in(lot)) * size);
		if (fits) {
			ledger_end(&alloc, true, (unsigned long)&space->group_records[lot], false);
			WRITE_ONCE(space->group_lots, lot + 1);
		}
	}
	mutex_unlock(&space->lots_lock);
	return fits;
}

static unsigned int groups_and_ranges(const struct va_space *space)
{
	return atomic_read(&space->groups) + READ_ONCE(space->ranges);
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
static bool count_assignment(struct va_space *space, void *va_space)
{
	WRITE_ONCE(space->ranges, space->ranges + RANGES_ASSIGNED);
	if (groups_and_ranges(space) <= groups_in(READ_ONCE(space->group_lots)))
		return true;
	WRITE_ONCE(space->ranges, count_assigned(va_space) + RANGES_ASSIGNED);
	return count_groups(space, 2 * groups_and_ranges(space)) ||
	       count_groups(space, groups_and_ranges(space));
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
	INSIDE(assign_range);
	struct va_space *space;

	raw_spin_lock(&spaces_lock);
	space = find_locked(va_space);
	raw_spin_unlock(&spaces_lock);
	if (!space || count_assignment(space, va_space) || !may_fail())
		return umacct_original_assign_range(va_space, group, start, end);
	return NV_ERR_NO_MEMORY;
}

u32 umacct_replace_create_group(void *params, struct file *file)
{
	INSIDE(create_group);
	struct va_space *space = va_space_of(file);
	u32 status = NV_ERR_NO_MEMORY;

	if (space)
		atomic_inc(&space->groups);
	if (!space || count_groups(space, groups_and_ranges(space)))
		status = umacct_original_create_group(params, file);
	if (space && status != NV_OK)
		atomic_dec(&space->groups);
	return status;
}

u32 umacct_replace_destroy_group(void *params, struct file *file)
{
	INSIDE(destroy_group);
	struct va_space *space = va_space_of(file);
	u32 status;

	status = umacct_original_destroy_group(params, file);
	/* Groups that were made before umacct was loaded are not counted. */
	if (space && status == NV_OK)
		atomic_dec_if_positive(&space->groups);
	return status;
}

/**
 * struct thread_work - what a thread of nvidia-uvm's does just now
 * @call: the attribution for hooks deeper down
 * @memcg: what is charged, where the driver has not said so; referenced
 */
struct thread_work {
	struct call call;
	struct mem_cgroup *memcg;
};

static void thread_begin(struct thread_work *work, const void *va_space)
{
	struct mem_cgroup *memcg = NULL;
	struct pid *process = NULL;
	struct va_space *space;

	raw_spin_lock(&spaces_lock);
	space = find_locked(va_space);
	if (space) {
		process = get_pid(space->process);
		memcg = memcg_active() ? NULL : memcg_get(space->memcg);
	}
	raw_spin_unlock(&spaces_lock);
	*work = (struct thread_work) { .call = { .process = process }, .memcg = memcg };
	if (memcg)
		memcg_set_active(memcg);
	call_begin(&work->call);
}

static void thread_end(struct thread_work *work)
{
	call_end(&work->call);
	put_pid(work->call.process);
	if (!work->memcg)
		return;
	memcg_set_active(NULL);
	memcg_put(work->memcg);
}

/* uvm_va_block_service_locked(): where every fault gets to that needs memory. */
u32 umacct_replace_service_block(unsigned long processor, void *block, void *retry, void *context)
{
	INSIDE(service_block);
	struct thread_work work;
	u32 status;

	if (likely(!(current->flags & PF_KTHREAD)))
		return umacct_original_service_block(processor, block, retry, context);
	thread_begin(&work, umacct_original_block_va_space(block));
	status = umacct_original_service_block(processor, block, retry, context);
	thread_end(&work);
	return status;
}

static noinline bool may_fault(const void *va_space)
{
	struct thread_work work;
	struct shortage why;
	bool may;

	thread_begin(&work, va_space);
	may = umacct_chunk_may_fault(work.call.process, &why);
	thread_end(&work);
	if (!may)
		umacct_way_out_short(&why);
	return may;
}

/*
 * uvm_va_block_find_create_in_range(): where a GPU's fault gets to first. Of one that fails here the
 * driver knows whose it is, and cancels that one. Of one that fails later, for want of memory, it
 * doesn't, and cancels all that it serves together, other programs' among them.
 */
u32 umacct_replace_find_create_block(void *va_space, unsigned long b, unsigned long c,
				     unsigned long d, unsigned long e)
{
	INSIDE(find_create_block);

	if (likely(!(current->flags & PF_KTHREAD)) || may_fault(va_space))
		return umacct_original_find_create_block(va_space, b, c, d, e);
	return NV_ERR_NO_MEMORY;
}

/* Forgets all VA spaces: the driver is gone, or no longer followed. No hook here is armed. */
void umacct_va_space_forget(void)
{
	struct hlist_node *next;
	struct va_space *space;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spaces); i++) {
		hlist_for_each_entry_safe(space, next, &spaces[i], node) {
			unlist_locked(space);
			va_space_free(space);
		}
	}
}
