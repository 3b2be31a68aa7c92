// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the current task is doing inside the driver, for hooks that are reached
 * deeper in the same call. A task finds its own entry only, so a slot needs no
 * lock: whoever takes it is the only one that looks for it and releases it.
 */
#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/kprobes.h>
#include <linux/sched.h>

#include "hooks/call.h"

#define CALL_SLOT_BITS	8
#define CALL_SLOTS	BIT(CALL_SLOT_BITS)

static struct {
	struct task_struct *task;
	struct call *call;
} slots[CALL_SLOTS];

/* Slots in use: while there are none, looking up costs one load. */
static atomic_t slots_used;

static unsigned int first_slot(const struct task_struct *task)
{
	return hash_ptr(task, CALL_SLOT_BITS);
}
NOKPROBE_SYMBOL(first_slot);

static int find_slot(const struct task_struct *task)
{
	unsigned int i, at = first_slot(task);

	for (i = 0; i < CALL_SLOTS; i++) {
		unsigned int slot = (at + i) % CALL_SLOTS;

		if (READ_ONCE(slots[slot].task) == task)
			return slot;
	}
	return -1;
}
NOKPROBE_SYMBOL(find_slot);

/**
 * call_begin() - make a call known to the hooks deeper down
 * @call: on the caller's stack, its flags set
 *
 * Calls nest; the innermost is what call_current() finds.
 *
 * Context: process context.
 * Return: false if more tasks than there are slots are inside the driver; then
 *	@call is not known and call_end() must not be called.
 */
bool call_begin(struct call *call)
{
	unsigned int i, at;
	int slot;

	call->task = current;
	call->outer = call_current();
	if (call->outer) {
		slot = find_slot(current);
		WRITE_ONCE(slots[slot].call, call);
		return true;
	}
	at = first_slot(current);
	for (i = 0; i < CALL_SLOTS; i++) {
		slot = (at + i) % CALL_SLOTS;
		if (!READ_ONCE(slots[slot].task) &&
		    !cmpxchg(&slots[slot].task, NULL, current)) {
			WRITE_ONCE(slots[slot].call, call);
			atomic_inc(&slots_used);
			return true;
		}
	}
	return false;
}

/**
 * call_end() - undo call_begin()
 * @call: the innermost call of the current task
 *
 * Context: process context.
 */
void call_end(struct call *call)
{
	int slot = find_slot(call->task);

	WRITE_ONCE(slots[slot].call, call->outer);
	if (!call->outer) {
		/* Whoever takes the slot next must not see this call in it. */
		smp_store_release(&slots[slot].task, NULL);
		atomic_dec(&slots_used);
	}
}

/**
 * call_current() - the innermost call of the current task
 *
 * Context: any, a kprobe's handler included.
 * Return: the call, or NULL.
 */
struct call *call_current(void)
{
	int slot;

	if (!atomic_read(&slots_used))
		return NULL;
	slot = find_slot(current);
	return slot < 0 ? NULL : READ_ONCE(slots[slot].call);
}
NOKPROBE_SYMBOL(call_current);
