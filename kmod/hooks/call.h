/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CALL_H
#define UMACCT_CALL_H

#include <linux/hash.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/types.h>
/* Needs cpu_relax() and doesn't include it. */
#include <linux/list_bl.h>

struct pid;

/**
 * struct call - a call of the current task into the driver that hooks deeper
 *	down must know of
 * @bucket: where it is found; set by call_begin(), as is the next
 * @task: whose
 * @for_driver: the driver does its own work: what it allocates is its own; set by call_begin()
 *	where an outer call has it
 * @answering: the kernel formats an answer for user space, see view.c
 * @destroying: nvidia-uvm is destroying a range, and none of its calls may fail
 * @process: in a thread of nvidia-uvm's: whose VA space it works for, if that is known
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
	bool for_driver;
	bool answering;
	bool destroying;
	bool refused;
	bool account_pages;
	bool zero_pages;
	bool charged;
	u64 bytes;
	struct pid *process;
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

/* The innermost call of the current task, or NULL. */
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

/*
 * Makes a call, whose flags are set, known to the hooks deeper down. Calls nest; the innermost is
 * what call_current() finds. call_end() must follow.
 */
static inline void call_begin(struct call *call)
{
	struct hlist_bl_head *bucket = call_bucket();
	const struct call *outer = call_current();

	if (unlikely(outer))
		call->for_driver |= outer->for_driver;
	call->bucket = bucket;
	call->task = current;
	hlist_bl_lock(bucket);
	hlist_bl_add_head(&call->node, bucket);
	hlist_bl_unlock(bucket);
}

/* Undoes call_begin(), of the innermost call. */
static inline void call_end(struct call *call)
{
	hlist_bl_lock(call->bucket);
	__hlist_bl_del(&call->node);
	hlist_bl_unlock(call->bucket);
}

#endif /* UMACCT_CALL_H */
