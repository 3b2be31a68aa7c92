/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CALL_H
#define UMACCT_CALL_H

#include <linux/hash.h>
#include <linux/sched.h>
#include <linux/types.h>
/* Needs cpu_relax() and doesn't include it. */
#include <linux/list_bl.h>

/**
 * struct call - a call of the current task into the driver that hooks deeper
 *	down must know of
 * @task: whose; set by call_begin()
 * @outer: the task's call around this one, if any
 * @initialising: the driver is bringing up an adapter: what it allocates is its own
 * @asks: the task asks for something of its own; no adapter is brought up by that
 * @account_pages: have the kernel charge the pages of this allocation
 * @bytes: how much it takes
 * @zero_pages: have the page allocator clear them, as the driver was told not to
 * @charged: result: the pages are, as the last two say
 * @srcu: charge.c's
 * @may_wait: the task can be made to wait when this call ends
 * @penalty_ns: result: for how long
 * @penalty_id: result: the account that it counts for
 *
 * Lives on the stack of a replacement, so there is one for every call.
 */
struct call {
	struct hlist_bl_node node;
	struct task_struct *task;
	struct call *outer;
	bool initialising;
	bool asks;
	bool account_pages;
	bool zero_pages;
	bool charged;
	int srcu;
	u64 bytes;
	bool may_wait;
	u64 penalty_ns;
	u64 penalty_id;
};

void call_begin(struct call *call);
void call_end(struct call *call);
struct call *call_find(struct hlist_bl_head *bucket);

/* Several times as many as there are tasks inside the driver on a busy machine. */
#define CALL_HASH_BITS	10

extern struct hlist_bl_head call_hash[1 << CALL_HASH_BITS];

static inline struct hlist_bl_head *call_bucket(void)
{
	return &call_hash[hash_ptr(current, CALL_HASH_BITS)];
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

	/* A call of this task would be there. */
	return likely(hlist_bl_empty(bucket)) ? NULL : call_find(bucket);
}

#endif /* UMACCT_CALL_H */
