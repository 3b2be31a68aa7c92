/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_HOOK_H
#define UMACCT_HOOK_H

#include <linux/mm_types.h>
#include <linux/task_work.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <umacct.h>

#include "hooks/profile.h"
#include "probe/probe.h"

#define HOOK_CALLS_MAX	2

/* A function that is called, and not hooked: by a thunk that jumps to @entry. NULL for none. */
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
 * @retriable: while OFF or FAILED: another try may succeed, as after a lack of memory or while
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
	bool retriable;
	char reason[96];
};

/* See PROBE_INSIDE(). */
#define INSIDE(name)	PROBE_INSIDE(&umacct_hook_##name.probe)

/* Types in the declarations of hooks.h. */
struct file;
struct inode;
struct seq_file;
struct sysinfo;
struct uvm_mem_params;

#define HOOK(name, module, function, description, ret, params, ...)	\
	extern struct hook umacct_hook_##name;				\
	DECLARE_REDIRECT(ret, name, params);
#define HOOK_STATIC(name, module, function, description, ret, params, ...) \
	HOOK(name, module, function, description, ret, params)		\
	ret umacct_keep_##name params;
#define CALLED(name, ret, params)	DECLARE_ORIGINAL(ret, name, params);
#include "hooks/hooks.h"

bool umacct_charge_wanted(void);
void umacct_charge_quiesce(void);
bool umacct_view_wanted(void);
void umacct_va_space_forget(void);

/* Whether features can be switched on, for netlink/. Each sets @why to a sentence if not. */
bool umacct_charge_possible(const char **why);
bool umacct_throttle_possible(const char **why);
bool umacct_view_possible(const char **why);

/* Every hook, in the order of arming. Disarming goes backwards. */
extern struct hook *const umacct_hooks[];
extern const unsigned int umacct_nr_hooks;

#define for_each_hook(hook)						\
	for (unsigned int __at = 0; __at < umacct_nr_hooks && ((hook) = umacct_hooks[__at]); __at++)

#define for_each_hook_reverse(hook)					\
	for (unsigned int __at = umacct_nr_hooks; __at && ((hook) = umacct_hooks[__at - 1]); __at--)

/* Arms and disarms by what is wanted now; for a replacement, which can't wait for that. */
extern struct work_struct umacct_hook_work;

void umacct_hook_lock(void);
void umacct_hook_unlock(void);
bool umacct_hook_applies(const struct hook *hook);
bool umacct_hook_can_be_armed(const struct hook *hook);
void umacct_hook_arm(struct hook *hook);
void umacct_hook_leave_off(struct hook *hook);
void umacct_hook_disarm(struct hook *hook, enum umacct_hook_state state);

#endif /* UMACCT_HOOK_H */
