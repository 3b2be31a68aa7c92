/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_HOOK_H
#define UMACCT_HOOK_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <umacct.h>

#include "hooks/versions.h"
#include "probe/probe.h"

/**
 * struct hook - a place in the driver or the kernel, and what we do there
 * @name: what it is for, for status
 * @module: whose function it is
 * @required: without it nothing is accounted
 * @limits: without it something is taken that no limit holds for
 * @layouts: the layouts of the driver that it is for, see enum driver_layout; 0: all
 * @symbol: where it is, if the driver's version decides that. NULL: at @probe's symbol
 * @wanted: is the feature it serves on? NULL: always
 * @quiesce: waits until nobody relies on the hook who may have found it armed
 * @calls: another function of the driver that the replacement calls
 * @calls_entry: where that one's thunk jumps to
 * @probe: the hook itself
 * @name_size: of @name with its end: whoever asks for the status is told each hook's
 * @symbol_size: of @probe's symbol, likewise
 * @state: see enum umacct_hook_state
 * @possible: while OFF or FAILED: nothing speaks against another try. Want of memory
 *	does not, nor somebody else's redirection
 * @reason: why @state is FAILED
 */
struct hook {
	const char *name;
	enum hook_module module;
	bool required;
	bool limits;
	unsigned int layouts;
	const char *(*symbol)(const struct driver_profile *profile);
	bool (*wanted)(void);
	void (*quiesce)(void);
	const char *calls;
	unsigned long *calls_entry;
	struct probe probe;

	u16 name_size;
	u16 symbol_size;
	enum umacct_hook_state state;
	bool possible;
	char reason[96];
};

/* Arms and disarms by what is wanted now; for a replacement, which can't wait for that. */
extern struct work_struct hook_work;

void hook_lock(void);
void hook_unlock(void);
bool hook_applies(const struct hook *hook);
bool hook_possible(const struct hook *hook);
void hook_arm(struct hook *hook);
void hook_leave_off(struct hook *hook);
void hook_disarm(struct hook *hook, enum umacct_hook_state state);

#endif /* UMACCT_HOOK_H */
