// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the current task is doing inside the driver, for hooks that are reached
 * deeper in the same call.
 *
 * The calls of all tasks are in a hash by task. Each lies on its task's stack, so
 * there are always enough of them, and a task looks for its own alone: what it finds
 * can't go. A bucket's lock keeps the calls of others in place while they are passed.
 */
#include <linux/hash.h>
#include <linux/sched.h>

#include "hooks/call.h"

/* Several times as many as there are tasks inside the driver on a busy machine. */
#define CALL_HASH_BITS	10

static struct hlist_bl_head calls[1 << CALL_HASH_BITS];

static struct hlist_bl_head *bucket(const struct task_struct *task)
{
	return &calls[hash_ptr(task, CALL_HASH_BITS)];
}

/**
 * call_begin() - make a call known to the hooks deeper down
 * @call: on the caller's stack, its flags set
 *
 * Calls nest; the innermost is what call_current() finds. call_end() must follow.
 *
 * Context: task context.
 */
void call_begin(struct call *call)
{
	struct hlist_bl_head *head = bucket(current);

	call->task = current;
	call->outer = call_current();
	hlist_bl_lock(head);
	hlist_bl_add_head(&call->node, head);
	hlist_bl_unlock(head);
}

/**
 * call_end() - undo call_begin()
 * @call: the innermost call of the current task
 *
 * Context: task context.
 */
void call_end(struct call *call)
{
	struct hlist_bl_head *head = bucket(call->task);

	hlist_bl_lock(head);
	hlist_bl_del(&call->node);
	hlist_bl_unlock(head);
}

/**
 * call_current() - the innermost call of the current task
 *
 * Context: task context.
 * Return: the call, or NULL.
 */
struct call *call_current(void)
{
	struct hlist_bl_head *head = bucket(current);
	struct call *call, *found = NULL;
	struct hlist_bl_node *node;

	/* A call of this task would be here. */
	if (likely(hlist_bl_empty(head)))
		return NULL;
	hlist_bl_lock(head);
	/* The newest comes first. */
	hlist_bl_for_each_entry(call, node, head, node) {
		if (call->task == current) {
			found = call;
			break;
		}
	}
	hlist_bl_unlock(head);
	return found;
}
