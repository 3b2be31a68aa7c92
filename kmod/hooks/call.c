// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the current task is doing inside the driver, for hooks that are reached
 * deeper in the same call.
 *
 * The calls of all tasks are in a hash by task. Each lies on its task's stack, so
 * there are always enough of them, and a task looks for its own alone: what it finds
 * can't go. A bucket's lock keeps the calls of others in place while they are passed.
 */
#include "hooks/call.h"

struct hlist_bl_head call_hash[1 << CALL_HASH_BITS];

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
	struct hlist_bl_head *bucket = call_bucket();

	call->task = current;
	call->outer = call_current();
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
void call_end(struct call *call)
{
	struct hlist_bl_head *bucket = call_bucket();

	hlist_bl_lock(bucket);
	hlist_bl_del(&call->node);
	hlist_bl_unlock(bucket);
}

/**
 * call_find() - the innermost call of the current task
 * @bucket: call_bucket(); see call_current()
 *
 * Context: task context.
 * Return: the call, or NULL.
 */
struct call *call_find(struct hlist_bl_head *bucket)
{
	struct call *call, *found = NULL;
	struct hlist_bl_node *node;

	hlist_bl_lock(bucket);
	/* The newest comes first. */
	hlist_bl_for_each_entry(call, node, bucket, node) {
		if (call->task == current) {
			found = call;
			break;
		}
	}
	hlist_bl_unlock(bucket);
	return found;
}
