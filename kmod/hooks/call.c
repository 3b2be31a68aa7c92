// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver function that the current task is in, for hooks that are reached deeper in the same
 * call.
 *
 * The calls of all tasks are in a hash by task. Each lies on its task's stack, so
 * there are always enough of them, and a task looks for its own alone: what it finds
 * can't go. A bucket's lock keeps the calls of others in place while they are passed.
 */
#include <linux/delay.h>

#include "hooks/call.h"

struct hlist_bl_head umacct_call_hash[1 << CALL_HASH_BITS];

/* Finds the innermost call of the current task, whose call_bucket() it gets, or NULL. */
struct call *umacct_call_find(struct hlist_bl_head *bucket)
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

/* Notes why nvidia-uvm did not get what it asked for last: for a limit, or for want of memory. */
void umacct_call_set_refused(bool refused)
{
	struct call *call = call_current();

	if (call)
		call->refused = refused;
}

static bool any_in(struct hlist_bl_head *bucket, bool (*matches)(const struct call *call))
{
	struct hlist_bl_node *node;
	struct call *call;
	bool any = false;

	hlist_bl_lock(bucket);
	hlist_bl_for_each_entry(call, node, bucket, node)
		any |= matches(call);
	hlist_bl_unlock(bucket);
	return any;
}

/*
 * Waits until calls that match have ended. One that begins meanwhile sees what was written before.
 * It is waited for, too, if it matches, so it must end soon then. May sleep.
 */
void umacct_call_wait_for(bool (*matches)(const struct call *call))
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(umacct_call_hash); i++)
		while (any_in(&umacct_call_hash[i], matches))
			msleep(20);
}
