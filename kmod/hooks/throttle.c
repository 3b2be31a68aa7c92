// SPDX-License-Identifier: GPL-2.0-only
/*
 * Throttling: a task that allocates above a soft limit pays with time, as above
 * memory.high.
 *
 * The driver allocates with its API lock held, for all its users, so that is no
 * place to sleep. The allocation only notes what is owed; the task pays when its
 * ioctl has returned from the driver, with no lock of the driver held: nobody
 * else ever waits for it. The delay grows with the excess, to the account's
 * longest at an eighth above the limit; a fatal signal ends it.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched.h>

#include "hooks/call.h"
#include "hooks/hooks.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "hooks/throttle.h"

/* Excess at which the delay is the longest, as a part of the limit. */
#define FULL_DELAY_PART		8

DECLARE_REDIRECT(long, ioctl, struct file *file, unsigned int cmd, unsigned long arg);
DECLARE_REDIRECT(long, frontend_ioctl, struct file *file, unsigned int cmd,
		 unsigned long arg);

static u64 delay_ns(const struct account *account)
{
	u64 full = max(account->soft / FULL_DELAY_PART, 1ULL);
	u64 excess = min(account->usage - account->soft, full);

	return mul_u64_u64_div_u64(account->throttle_ns, excess, full);
}

/**
 * throttle_owe_locked() - the current task has allocated above a soft limit
 * @account: whose limit it is
 *
 * Context: ledger_lock held.
 */
void throttle_owe_locked(const struct account *account)
{
	struct call *call = call_current();
	u64 delay = delay_ns(account);

	while (call && !call->pays)
		call = call->outer;
	if (call && delay > call->delay_ns) {
		call->delay_ns = delay;
		call->delay_account = account->id;
	}
}

static void count_delay(u64 account_id, u64 ns)
{
	struct account *account;

	raw_spin_lock(&ledger_lock);
	for (account = account_find_locked(account_id); account; account = account->parent)
		account->throttled_ns += ns;
	raw_spin_unlock(&ledger_lock);
}

static void pay(const struct call *call)
{
	ktime_t delay = ns_to_ktime(call->delay_ns), start = ktime_get();

	__set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&delay, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
	count_delay(call->delay_account, ktime_to_ns(ktime_sub(ktime_get(), start)));
}

long replace_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct call call = { .pays = true };
	bool known;
	long ret;

	probe_enter(&hook_ioctl.probe);
	known = call_begin(&call);
	ret = original_ioctl(file, cmd, arg);
	if (known)
		call_end(&call);
	if (call.delay_ns)
		pay(&call);
	probe_leave(&hook_ioctl.probe);
	return ret;
}

long replace_frontend_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct call call = { .pays = true };
	bool known;
	long ret;

	probe_enter(&hook_frontend_ioctl.probe);
	known = call_begin(&call);
	ret = original_frontend_ioctl(file, cmd, arg);
	if (known)
		call_end(&call);
	if (call.delay_ns)
		pay(&call);
	probe_leave(&hook_frontend_ioctl.probe);
	return ret;
}

/**
 * throttle_wanted() - is there any account with a throttle?
 *
 * Context: any.
 */
bool throttle_wanted(void)
{
	return READ_ONCE(ledger.throttles);
}

/**
 * throttle_possible() - can throttles be set?
 * @why: set to a sentence if not
 *
 * Context: may sleep; under driver_lock().
 */
bool throttle_possible(const char **why)
{
	const struct hook *hook = driver_hook_applies(&hook_ioctl) ? &hook_ioctl :
								     &hook_frontend_ioctl;

	if (driver_hook_possible(hook))
		return true;
	*why = "the driver's ioctl can't be hooked, so there is no place to wait";
	return false;
}

static bool has_ioctl(const struct driver_profile *profile)
{
	return profile->alloc == ALLOC_10;
}

static bool has_frontend(const struct driver_profile *profile)
{
	return profile->alloc != ALLOC_10;
}

struct hook hook_ioctl = {
	.name = "throttle",
	.applies = has_ioctl,
	.wanted = throttle_wanted,
	.probe = {
		.symbol = "nvidia:nvidia_unlocked_ioctl",
		REDIRECT(ioctl),
	},
};

struct hook hook_frontend_ioctl = {
	.name = "throttle",
	.applies = has_frontend,
	.wanted = throttle_wanted,
	.probe = {
		.symbol = "nvidia:nvidia_frontend_unlocked_ioctl",
		REDIRECT(frontend_ioctl),
	},
};
