// SPDX-License-Identifier: GPL-2.0-only
/*
 * Throttling: a task that allocates above a soft limit has to wait, as above
 * memory.high.
 *
 * The driver allocates with its API lock held, for all its users, so that is no
 * place to sleep. The allocation only notes the penalty; the task waits when its
 * ioctl has returned from the driver, with no lock of the driver held: nobody
 * else ever waits for it. A fatal signal ends the wait.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ioctl.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include "hooks/adapter.h"
#include "hooks/call.h"
#include "hooks/throttle.h"
#include "ledger/account.h"
#include "ledger/lock.h"
#include "ledger/settings.h"

/* The driver's ioctl that opens adapters, for a task that says which. */
#define ATTACH_GPUS_TO_FD	212

typedef long ioctl_fn(struct file *file, unsigned int cmd, unsigned long arg);

DECLARE_REDIRECT(long, ioctl, (struct file *file, unsigned int cmd, unsigned long arg));
DECLARE_REDIRECT(long, compat_ioctl, (struct file *file, unsigned int cmd, unsigned long arg));

/**
 * throttle_note() - the current task has allocated above a soft limit
 * @penalty_ns: how long it is to wait; the longest of an ioctl counts
 * @account_id: whose limit it is
 *
 * Context: process context.
 */
void throttle_note(u64 penalty_ns, u64 account_id)
{
	struct call *call = call_current();

	while (call && !call->penalty)
		call = call->outer;
	if (call && penalty_ns > call->penalty->ns)
		*call->penalty = (struct penalty) { .ns = penalty_ns, .account_id = account_id };
}

static void throttle_count(u64 account_id, u64 ns)
{
	struct account *account;

	raw_spin_lock_irq(&ledger_lock);
	for (account = account_find_locked(account_id); account; account = account->parent)
		account->throttled_ns += ns;
	raw_spin_unlock_irq(&ledger_lock);
}

static void throttle_wait(const struct penalty *penalty)
{
	ktime_t delay = ns_to_ktime(penalty->ns), start = ktime_get();

	__set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&delay, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
	throttle_count(penalty->account_id, ktime_to_ns(ktime_sub(ktime_get(), start)));
}

static __always_inline long throttled(struct probe *probe, ioctl_fn *original,
				      struct file *file, unsigned int cmd, unsigned long arg)
{
	struct penalty penalty = { 0 };
	struct call call = { .penalty = &penalty, .asks = _IOC_NR(cmd) != ATTACH_GPUS_TO_FD };
	long ret;

	probe_enter(probe);
	call_begin(&call);
	ret = original(file, cmd, arg);
	call_end(&call);
	if (penalty.ns)
		throttle_wait(&penalty);
	probe_leave(probe);
	return ret;
}

long replace_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return throttled(&hook_ioctl.probe, original_ioctl, file, cmd, arg);
}

/* A program of 32 bits, or whoever makes its system calls. */
long replace_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return throttled(&hook_compat_ioctl.probe, original_compat_ioctl, file, cmd, arg);
}

/* Is there any account with a throttle? Or is it not known otherwise who asks for himself? */
static bool throttle_wanted(void)
{
	return READ_ONCE(settings.throttles) || hook_init_adapter.state == UMACCT_HOOK_FAILED;
}

/**
 * throttle_possible() - can throttles be set?
 * @why: set to a sentence if not
 *
 * Context: may sleep; under hook_lock().
 */
bool throttle_possible(const char **why)
{
	if (hook_possible(&hook_ioctl) &&
	    (!hook_applies(&hook_compat_ioctl) || hook_possible(&hook_compat_ioctl)))
		return true;
	*why = "the driver's ioctl can't be hooked, so there is no place to wait";
	return false;
}

static const char *ioctl_symbol(const struct driver_profile *profile)
{
	return profile->ioctl;
}

struct hook hook_ioctl = {
	.name = "throttle",
	.symbol = ioctl_symbol,
	.wanted = throttle_wanted,
	.probe = {
		.symbol = "nvidia:nvidia_unlocked_ioctl",
		REDIRECT(ioctl),
	},
};

struct hook hook_compat_ioctl = {
	.name = "throttle 32-bit",
	.layouts = LAYOUT_IOCTL_32,
	.wanted = throttle_wanted,
	.probe = {
		.symbol = "nvidia:nvidia_frontend_compat_ioctl",
		REDIRECT(compat_ioctl),
	},
};
