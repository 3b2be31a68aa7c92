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

/**
 * umacct_hook_lock() - keep hooks and drivers' profiles as they are
 *
 * The notifier of modules takes it too, so a driver can't go meanwhile.
 *
 * Context: may sleep.
 */
void umacct_hook_lock(void)
{
	mutex_lock(&hook_mutex);
}

/**
 * umacct_hook_unlock() - undo umacct_hook_lock()
 */
void umacct_hook_unlock(void)
{
	mutex_unlock(&hook_mutex);
}

/**
 * umacct_hook_applies() - is this hook one for the loaded driver?
 * @hook: the hook
 *
 * Context: under umacct_hook_lock().
 * Return: also false while a driver is absent whose version decides.
 */
bool umacct_hook_applies(const struct hook *hook)
{
	lockdep_assert_held(&hook_mutex);
	return !hook->layouts || (hook->layouts & driver_profile(hook->module)->layouts);
}

/**
 * umacct_hook_possible() - could a hook that is not armed be?
 * @hook: a hook that serves an optional feature
 *
 * Context: under umacct_hook_lock().
 * Return: true also while the driver is not loaded: nothing speaks against it.
 */
bool umacct_hook_possible(const struct hook *hook)
{
	lockdep_assert_held(&hook_mutex);
	if (hook->state == UMACCT_HOOK_OFF || hook->state == UMACCT_HOOK_FAILED)
		return hook->possible;
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

/**
 * umacct_hook_arm() - start hooking
 * @hook: a hook that is not armed, and for the driver that is loaded
 *
 * Its state says how that went.
 *
 * Context: may sleep; under umacct_hook_lock().
 */
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
	hook->possible = err == -ENOMEM || err == -EBUSY;
	WRITE_ONCE(hook->state, UMACCT_HOOK_FAILED);
	text = error_text(err);
	if (text)
		strscpy(hook->reason, text, sizeof(hook->reason));
	else
		snprintf(hook->reason, sizeof(hook->reason), "error %d", err);
	pr_warn("no hook \"%s\" at %s: %s\n", hook->name, hook->probe.symbol, hook->reason);
}

/**
 * umacct_hook_leave_off() - don't hook what is not wanted yet
 * @hook: a hook that is not armed, and for the driver that is loaded
 *
 * Finds out whether it could be armed: what is not there doesn't come while the driver
 * stays.
 *
 * Context: may sleep; under umacct_hook_lock().
 */
void umacct_hook_leave_off(struct hook *hook)
{
	unsigned long address;
	int err;

	lockdep_assert_held(&hook_mutex);
	err = umacct_probe_resolve(hook->probe.symbol, &address) ?: resolve_called(hook);
	hook->possible = !err || err == -ENOMEM;
	hook->reason[0] = '\0';
	WRITE_ONCE(hook->state, UMACCT_HOOK_OFF);
}

/**
 * umacct_hook_disarm() - stop hooking
 * @hook: a hook in any state
 * @state: the state that it gets
 *
 * Tasks may still be inside the replacement; see umacct_probe_drain().
 *
 * Context: may sleep; under umacct_hook_lock().
 */
void umacct_hook_disarm(struct hook *hook, enum umacct_hook_state state)
{
	lockdep_assert_held(&hook_mutex);
	hook->possible = hook->state == UMACCT_HOOK_ARMED;
	hook->reason[0] = '\0';
	WRITE_ONCE(hook->state, state);
	if (hook->possible && hook->quiesce)
		hook->quiesce();
	umacct_probe_disarm(&hook->probe);
}
