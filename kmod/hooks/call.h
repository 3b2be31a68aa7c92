/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CALL_H
#define UMACCT_CALL_H

#include <linux/hash.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/types.h>
/* Needs cpu_relax() and doesn't include it. */
#include <linux/list_bl.h>

struct range_arrays;

/**
 * struct call - a call of the current task into the driver that hooks deeper
 *	down must know of
 * @bucket: where it is found; set by call_begin(), as is the next
 * @task: whose
 * @initialising: the driver is bringing up an adapter: what it allocates is its own
 * @fault: a page fault on managed memory
 * @within: an outer hook counts what is allocated
 * @destroying: nvidia-uvm is destroying a range, and none of its calls may fail
 * @arrays: a range of nvidia-uvm's is being made: its arrays go with it, see metadata.c
 * @refused: result: the last request of nvidia-uvm's that failed was refused by a limit
 * @account_pages: have the kernel charge the pages of this allocation
 * @bytes: size of that allocation
 * @zero_pages: have the page allocator clear the pages, because the driver will not
 * @charged: result: the pages were charged, and cleared if @zero_pages
 *
 * It lies on the stack of a replacement, so every call has one.
 */
struct call {
	struct hlist_bl_node node;
	struct hlist_bl_head *bucket;
	struct task_struct *task;
	bool initialising;
	bool fault;
	bool within;
	bool destroying;
	bool refused;
	bool account_pages;
	bool zero_pages;
	bool charged;
	u64 bytes;
	struct range_arrays *arrays;
};

struct call *umacct_call_find(struct hlist_bl_head *bucket);
void umacct_call_set_refused(bool refused);
void umacct_call_wait_for(bool (*matches)(const struct call *call));

/* Several times as many as there are tasks inside the driver on a busy machine. */
#define CALL_HASH_BITS	10

extern struct hlist_bl_head umacct_call_hash[1 << CALL_HASH_BITS];

/* The pointer's lower half tells tasks apart, and is hashed in less than the whole. */
static inline struct hlist_bl_head *call_bucket(void)
{
	return &umacct_call_hash[hash_32(lower_32_bits((unsigned long)current), CALL_HASH_BITS)];
}

/**
 * call_current() - the innermost call of the current task
 *
 * Context: task context.
 * Return: the call, or NULL.
 */
static inline struct call *call_current(void)
{
	struct hlist_bl_head *bucket = call_bucket();
	/* A call of this task would be there, on its stack; whatever else comes and goes. */
	unsigned long newest = (unsigned long)data_race(READ_ONCE(bucket->first)) &
			       ~LIST_BL_LOCKMASK;

	if (likely(!newest))
		return NULL;
	if (likely(object_is_on_stack((void *)newest)))
		return hlist_bl_entry((struct hlist_bl_node *)newest, struct call, node);
	/* Those of others can't be looked at without the lock. */
	return umacct_call_find(bucket);
}

/**
 * call_begin() - make a call known to the hooks deeper down
 * @call: on the caller's stack, its flags set
 *
 * Calls nest; the innermost is what call_current() finds. call_end() must follow.
 *
 * Context: task context.
 */
static inline void call_begin(struct call *call)
{
	struct hlist_bl_head *bucket = call_bucket();

	call->bucket = bucket;
	call->task = current;
	hlist_bl_lock(bucket);
	hlist_bl_add_head(&call->node, bucket);
	hlist_bl_unlock(bucket);
}

/**
 * call_end() - undo call_begin()
 * @call: the innermost call of the current task
 *
 * Context: task context.
 */
static inline void call_end(struct call *call)
{
	hlist_bl_lock(call->bucket);
	__hlist_bl_del(&call->node);
	hlist_bl_unlock(call->bucket);
}

#endif /* UMACCT_CALL_H */
