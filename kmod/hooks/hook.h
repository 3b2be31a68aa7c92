/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_HOOK_H
#define UMACCT_HOOK_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <umacct.h>

#include "hooks/profile.h"
#include "probe/probe.h"

#define HOOK_CALLS_MAX	2

/**
 * struct called - a function that is called, and not hooked
 * @symbol: where it is; NULL for none
 * @entry: where its thunk jumps to
 */
struct called {
	const char *symbol;
	unsigned long *entry;
};

/**
 * struct hook - a place in the driver or the kernel, and what we do there
 * @name: what it is for, for status
 * @module: whose function it is
 * @required: without it nothing is accounted
 * @limits: without it, some memory is allocated outside of limits
 * @layouts: the layouts of the driver that it is for, see enum driver_layout; 0: all
 * @wanted: is the feature on that needs it? NULL: always
 * @quiesce: waits for callers that may have found the hook armed and rely on it
 * @calls: other functions of the driver that the replacement calls
 * @probe: the hook itself
 * @state: see enum umacct_hook_state
 * @possible: while OFF or FAILED: another try may succeed, as after a lack of memory or while
 *	another direct call holds the function
 * @reason: why @state is FAILED
 */
struct hook {
	const char *name;
	enum hook_module module;
	bool required;
	bool limits;
	unsigned int layouts;
	bool (*wanted)(void);
	void (*quiesce)(void);
	struct called calls[HOOK_CALLS_MAX];
	struct probe probe;

	enum umacct_hook_state state;
	bool possible;
	char reason[96];
};

/* Arms and disarms by what is wanted now; for a replacement, which can't wait for that. */
extern struct work_struct umacct_hook_work;

void umacct_hook_lock(void);
void umacct_hook_unlock(void);
bool umacct_hook_applies(const struct hook *hook);
bool umacct_hook_possible(const struct hook *hook);
void umacct_hook_arm(struct hook *hook);
void umacct_hook_leave_off(struct hook *hook);
void umacct_hook_disarm(struct hook *hook, enum umacct_hook_state state);

#endif /* UMACCT_HOOK_H */
