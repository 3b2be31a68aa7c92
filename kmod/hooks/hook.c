// SPDX-License-Identifier: GPL-2.0-only
/*
 * One hook: whether it is one for the loaded driver, whether it can be armed, and
 * its state while it comes and goes.
 */
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "hooks/hook.h"

static DEFINE_MUTEX(hook_mutex);

struct work_struct umacct_hook_work;

/*
 * Keeps hooks and drivers' profiles as they are. The notifier of modules takes it too, so a driver
 * can't go meanwhile. May sleep.
 */
void umacct_hook_lock(void)
{
	mutex_lock(&hook_mutex);
}

/* Lets go of what was looked up meanwhile, all together. */
void umacct_hook_unlock(void)
{
	umacct_probe_forget_lookups();
	mutex_unlock(&hook_mutex);
}

/* Is this hook one for the loaded driver? No while a driver is absent whose version decides. */
bool umacct_hook_applies(const struct hook *hook)
{
	lockdep_assert_held(&hook_mutex);
	return !hook->layouts || (hook->layouts & driver_profile(hook->module)->layouts);
}

/*
 * Could a hook that is not armed, and serves an optional feature, be? Also while the driver is not
 * loaded: nothing speaks against it.
 */
bool umacct_hook_can_be_armed(const struct hook *hook)
{
	lockdep_assert_held(&hook_mutex);
	if (hook->state == UMACCT_HOOK_OFF || hook->state == UMACCT_HOOK_FAILED)
		return hook->retriable;
	return true;
}

static const char *error_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "there is no such symbol";
	case -EINVAL:
		return "the kernel does not allow a probe there";
	case -EBUSY:
		return "the function is held by another direct call (BPF) or a live patch";
	case -ENXIO:
		return "the driver lacks a function that the hook calls";
	case -ENOMEM:
		return "out of memory";
	case -EOPNOTSUPP:
		return "this kernel has kprobes switched off";
	}
	return NULL;
}

static int resolve_called(const struct hook *hook)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < HOOK_CALLS_MAX && hook->calls[i].symbol && !err; i++)
		err = umacct_probe_resolve(hook->calls[i].symbol, hook->calls[i].entry);
	return err == -ENOENT ? -ENXIO : err;
}

static int arm(struct hook *hook)
{
	return resolve_called(hook) ?: umacct_probe_arm(&hook->probe);
}

/* Starts hooking, for the driver that is loaded. The hook's state says how that went. May sleep. */
void umacct_hook_arm(struct hook *hook)
{
	const char *text;
	int err;

	lockdep_assert_held(&hook_mutex);
	err = arm(hook);
	if (!err) {
		WRITE_ONCE(hook->state, UMACCT_HOOK_ARMED);
		return;
	}
	hook->retriable = err == -ENOMEM || err == -EBUSY;
	WRITE_ONCE(hook->state, UMACCT_HOOK_FAILED);
	text = error_text(err);
	if (text)
		strscpy(hook->reason, text, sizeof(hook->reason));
	else
		snprintf(hook->reason, sizeof(hook->reason), "error %d", err);
	pr_warn("no hook \"%s\" at %s: %s\n", hook->name, hook->probe.symbol, hook->reason);
}

/*
 * Doesn't hook what is not wanted yet, for the driver that is loaded. Finds out whether it could be
 * armed: what is not there doesn't come while the driver stays.
 */
void umacct_hook_leave_off(struct hook *hook)
{
	unsigned long address;
	int err;

	lockdep_assert_held(&hook_mutex);
	err = umacct_probe_resolve(hook->probe.symbol, &address) ?: resolve_called(hook);
	hook->retriable = !err || err == -ENOMEM;
	hook->reason[0] = '\0';
	WRITE_ONCE(hook->state, UMACCT_HOOK_OFF);
}

/*
 * Stops hooking; the hook gets @state. Tasks may still be inside the replacement; see
 * umacct_probe_drain().
 */
void umacct_hook_disarm(struct hook *hook, enum umacct_hook_state state)
{
	lockdep_assert_held(&hook_mutex);
	hook->retriable = hook->state == UMACCT_HOOK_ARMED;
	hook->reason[0] = '\0';
	WRITE_ONCE(hook->state, state);
	if (hook->retriable && hook->quiesce)
		hook->quiesce();
	umacct_probe_disarm(&hook->probe);
}
