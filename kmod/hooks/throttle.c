// SPDX-License-Identifier: GPL-2.0-only
/*
 * Throttling: a task that allocates above a soft limit has to wait, as above
 * memory.high, and at the same place: when its system call has ended and it returns to
 * user space.
 *
 * The driver allocates with locks held that its users share, so that is no place to sleep.
 * The allocation only notes the penalty, as work that the kernel has the task do on its
 * way back (task_work); no lock is held there, and nobody else waits for the task. A fatal
 * signal ends the wait.
 *
 * A task may sleep in the driver for as long as it likes before it comes to that. So
 * every penalty is in a list, and is taken back when the module goes: it stays for those
 * alone that wait just now.
 *
 * Neither of the kernel's two functions is for modules in every version: both are called
 * as the driver's are.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>

#include "hooks/throttle.h"
#include "ledger/account.h"
#include "ledger/lock.h"
#include "probe/probe.h"

DECLARE_ORIGINAL(int, task_work_add,
		 (struct task_struct *task, struct callback_head *work,
		  enum task_work_notify_mode notify));
DECLARE_ORIGINAL(struct callback_head *, task_work_cancel_match,
		 (struct task_struct *task, bool (*match)(struct callback_head *work, void *data),
		  void *data));

/**
 * struct penalty - a wait for being above a soft limit
 * @work: by which the task comes to it
 * @listed: in penalties, until the task has waited
 * @task: whose; lives at least as long
 * @ns: for how long
 * @account_id: the account that it counts for
 */
struct penalty {
	struct callback_head work;
	struct list_head listed;
	struct task_struct *task;
	u64 ns;
	u64 account_id;
};

static DEFINE_SPINLOCK(penalties_lock);
static LIST_HEAD(penalties);

static bool possible;

static void penalty_free(struct penalty *penalty)
{
	spin_lock(&penalties_lock);
	list_del(&penalty->listed);
	spin_unlock(&penalties_lock);
	kfree(penalty);
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

static void throttle_work(struct callback_head *work)
{
	struct penalty *penalty = container_of(work, struct penalty, work);

	/* Who exits allocates no more. */
	if (!(current->flags & PF_EXITING))
		throttle_wait(penalty);
	penalty_free(penalty);
}

static bool is_penalty(struct callback_head *work, void *unused)
{
	return work->func == throttle_work;
}

/* Takes back what a task has still before it. Return: NULL if there is nothing. */
static struct penalty *take_back(struct task_struct *task)
{
	struct callback_head *work = original_task_work_cancel_match(task, is_penalty, NULL);

	return work ? container_of(work, struct penalty, work) : NULL;
}

static struct penalty *penalty_alloc(void)
{
	struct penalty *penalty = kzalloc(sizeof(*penalty), GFP_KERNEL | __GFP_NOWARN);

	if (!penalty)
		return NULL;
	init_task_work(&penalty->work, throttle_work);
	penalty->task = current;
	spin_lock(&penalties_lock);
	list_add_tail(&penalty->listed, &penalties);
	spin_unlock(&penalties_lock);
	return penalty;
}

/**
 * throttle_note() - the current task has allocated above a soft limit
 * @penalty_ns: how long it is to wait; the longest of a system call counts
 * @account_id: whose limit it is
 *
 * If there is no memory to note it in, the task doesn't wait this time.
 *
 * Context: process context, may sleep.
 */
void throttle_note(u64 penalty_ns, u64 account_id)
{
	struct penalty *penalty;

	if (!possible || (current->flags & PF_KTHREAD))
		return;
	penalty = take_back(current) ?: penalty_alloc();
	if (!penalty)
		return;
	if (penalty_ns > penalty->ns) {
		penalty->ns = penalty_ns;
		penalty->account_id = account_id;
	}
	/* One that exits comes to no more work. */
	if (original_task_work_add(current, &penalty->work, TWA_RESUME))
		penalty_free(penalty);
}

/**
 * throttle_possible() - can throttles be set?
 * @why: set to a sentence if not
 *
 * Context: any.
 */
bool throttle_possible(const char **why)
{
	if (possible)
		return true;
	*why = "the kernel's task_work_add can't be called, so there is no place to wait";
	return false;
}

/**
 * throttle_init() - find the kernel's functions
 *
 * Context: module initialisation, before a hook is armed.
 */
void throttle_init(void)
{
	possible = !probe_resolve("task_work_add", &original_task_work_add_entry) &&
		   !probe_resolve("task_work_cancel_match",
				  &original_task_work_cancel_match_entry);
}

/* Return: false if there is no penalty left. */
static bool drop_one(void)
{
	struct task_struct *task = NULL;
	struct penalty *penalty;

	spin_lock(&penalties_lock);
	penalty = list_first_entry_or_null(&penalties, struct penalty, listed);
	/* It can't be gone: it would have taken its penalty off the list. */
	if (penalty)
		task = get_task_struct(penalty->task);
	spin_unlock(&penalties_lock);
	if (!task)
		return false;
	penalty = take_back(task);
	put_task_struct(task);
	if (penalty)
		penalty_free(penalty);
	else
		/* It waits just now, which is over soon. */
		msleep(20);
	return true;
}

/**
 * throttle_exit() - let nobody come to a penalty any more
 *
 * Those who are about to return from one are covered by probe_drain_end().
 *
 * Context: module exit; every hook on the driver is disarmed and drained.
 */
void throttle_exit(void)
{
	while (drop_one())
		;
}
