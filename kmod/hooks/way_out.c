// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a task has still to do when its system call has ended and it returns to user space.
 *
 * Throttling: a task that allocates above a soft limit has to wait, as above memory.high, and
 * at the same place. The driver allocates with locks held that its users share, so that is no
 * place to sleep.
 *
 * Failures: where the driver finds no memory, it asks again for the same in smaller pages,
 * within the same call. Whether the request failed is known when the call is over: then the
 * last failure is reported, unless as much was allocated since.
 *
 * An allocation only notes the one or the other, as work that the kernel has the task do on
 * its way back (task_work). No lock is held there, and nobody else waits for the task. A fatal
 * signal ends the wait.
 *
 * A task may sleep in the driver for as long as it likes before it comes to that. So every
 * note is in a list, and is taken back when the module goes: it stays for those alone that
 * wait just now.
 *
 * Neither of the kernel's two functions is for modules in every version: both are called
 * as the driver's are.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>

#include "hooks/possible.h"
#include "hooks/way_out.h"
#include "ledger/ledger.h"
#include "ledger/available.h"
#include "probe/probe.h"

DECLARE_ORIGINAL(int, task_work_add,
		 (struct task_struct *task, struct callback_head *work,
		  enum task_work_notify_mode notify));
DECLARE_ORIGINAL(struct callback_head *, task_work_cancel_match,
		 (struct task_struct *task, bool (*match)(struct callback_head *work, void *data),
		  void *data));

/**
 * struct failure - an allocation for which the driver had no memory
 * @account_id: whose it was
 * @bytes: what it would have taken; 0 if there is no failure
 * @available: what was available then, in bytes
 * @pages: pages asked for, rounded up to whole blocks
 * @block: pages in a block
 */
struct failure {
	u64 account_id;
	u64 bytes;
	u64 available;
	u64 pages;
	u64 block;
};

/**
 * struct note - what a task has still to do
 * @work: by which the task comes to it
 * @listed: in notes, until the task has done it
 * @task: whose; lives at least as long
 * @penalty_ns: how long to wait for being above a soft limit
 * @penalty_id: the account that the wait counts for
 * @failure: what is to be reported
 */
struct note {
	struct callback_head work;
	struct list_head listed;
	struct task_struct *task;
	u64 penalty_ns;
	u64 penalty_id;
	struct failure failure;
};

atomic_t umacct_way_out_failures;

static DEFINE_SPINLOCK(notes_lock);
static LIST_HEAD(notes);

static bool possible;

static void tell(const struct failure *failure)
{
	umacct_ledger_tell_failure(failure->account_id, failure->bytes, failure->available);
}

/* None at all: of no bytes. */
static void set_failure(struct note *note, const struct failure *failure)
{
	if (!note->failure.bytes && failure->bytes)
		atomic_inc(&umacct_way_out_failures);
	else if (note->failure.bytes && !failure->bytes)
		atomic_dec(&umacct_way_out_failures);
	note->failure = *failure;
}

static void forget_failure(struct note *note)
{
	set_failure(note, &(struct failure) { });
}

static void note_free(struct note *note)
{
	forget_failure(note);
	spin_lock(&notes_lock);
	list_del(&note->listed);
	spin_unlock(&notes_lock);
	kfree(note);
}

static void serve_penalty(const struct note *note)
{
	ktime_t delay = ns_to_ktime(note->penalty_ns), start = ktime_get();

	__set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&delay, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
	umacct_ledger_count_wait(note->penalty_id, ktime_to_ns(ktime_sub(ktime_get(), start)));
}

static void way_out_work(struct callback_head *work)
{
	struct note *note = container_of(work, struct note, work);

	if (note->failure.bytes)
		tell(&note->failure);
	forget_failure(note);
	/* A task that exits allocates no more. */
	if (note->penalty_ns && !(current->flags & PF_EXITING))
		serve_penalty(note);
	note_free(note);
}

static bool is_note(struct callback_head *work, void *unused)
{
	return work->func == way_out_work;
}

/* Takes back what a task has still before it. Return: NULL if there is nothing. */
static struct note *take_back(struct task_struct *task)
{
	struct callback_head *work = umacct_original_task_work_cancel_match(task, is_note, NULL);

	return work ? container_of(work, struct note, work) : NULL;
}

static struct note *note_alloc(gfp_t gfp)
{
	struct note *note = kzalloc(sizeof(*note), gfp);

	if (!note)
		return NULL;
	init_task_work(&note->work, way_out_work);
	note->task = current;
	spin_lock(&notes_lock);
	list_add_tail(&note->listed, &notes);
	spin_unlock(&notes_lock);
	return note;
}

/* A task that exits runs no more work: report at once. */
static void put_back(struct note *note)
{
	if (!umacct_original_task_work_add(current, &note->work, TWA_RESUME))
		return;
	if (note->failure.bytes)
		tell(&note->failure);
	note_free(note);
}

static bool has_way_out(void)
{
	return possible && !(current->flags & PF_KTHREAD);
}

/**
 * umacct_way_out_throttled() - the current task has allocated above a soft limit
 * @penalty_ns: how long it is to wait; the longest of a system call counts
 * @account_id: whose limit it is
 *
 * If there is no memory to note it in, the task doesn't wait this time.
 *
 * Context: process context, may sleep.
 */
void umacct_way_out_throttled(u64 penalty_ns, u64 account_id)
{
	struct note *note;

	if (!has_way_out())
		return;
	note = take_back(current) ?: note_alloc(GFP_KERNEL | __GFP_NOWARN);
	if (!note)
		return;
	if (penalty_ns > note->penalty_ns) {
		note->penalty_ns = penalty_ns;
		note->penalty_id = account_id;
	}
	put_back(note);
}

/**
 * umacct_way_out_failed() - the driver had no memory for an allocation of the current task
 * @account_id: whose it was
 * @bytes: what it would have taken
 * @pages: how many were asked for
 * @block: in blocks of so many
 *
 * Of one system call, the last such allocation is reported, if any. If there is no memory to
 * note it, or no way out, it is reported at once.
 *
 * Context: process context, may sleep; the driver's locks may be held.
 */
void umacct_way_out_failed(u64 account_id, u64 bytes, u64 pages, u64 block)
{
	const struct failure failure = {
		.account_id = account_id,
		.bytes = bytes,
		.available = available_now(),
		.pages = round_up(pages, block),
		.block = block,
	};
	struct note *note = NULL;

	/* The machine has no memory: this must not invoke the OOM killer. */
	if (has_way_out())
		note = take_back(current) ?:
		       note_alloc(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!note) {
		tell(&failure);
		return;
	}
	set_failure(note, &failure);
	put_back(note);
}

/**
 * umacct_way_out_had_memory() - the driver had memory for an allocation of the current
 *	task, and some task has a failure to tell
 * @pages: how many; S64_MAX has any failure forgotten
 *
 * A failed try in larger blocks was rounded up: it may count up to a block more than @pages.
 *
 * Context: process context, may sleep.
 */
void umacct_way_out_had_memory(u64 pages)
{
	struct note *note;

	if (!has_way_out())
		return;
	note = take_back(current);
	if (!note)
		return;
	if (pages + note->failure.block > note->failure.pages)
		forget_failure(note);
	if (note->failure.bytes || note->penalty_ns)
		put_back(note);
	else
		note_free(note);
}

/**
 * umacct_throttle_possible() - can throttles be set?
 * @why: set to a sentence if not
 *
 * Context: any.
 */
bool umacct_throttle_possible(const char **why)
{
	if (possible)
		return true;
	*why = "the kernel's task_work_add() cannot be called, so tasks cannot wait";
	return false;
}

/**
 * umacct_way_out_init() - find the kernel's functions
 *
 * Context: module initialisation, before a hook is armed.
 */
void umacct_way_out_init(void)
{
	possible = !umacct_probe_resolve("task_work_add", &umacct_original_task_work_add_entry) &&
		   !umacct_probe_resolve("task_work_cancel_match",
					 &umacct_original_task_work_cancel_match_entry);
}

/* Return: false if there is no note left. */
static bool drop_one(void)
{
	struct task_struct *task = NULL;
	struct note *note;

	spin_lock(&notes_lock);
	note = list_first_entry_or_null(&notes, struct note, listed);
	/* It can't be gone: it would have taken its note off the list. */
	if (note)
		task = get_task_struct(note->task);
	spin_unlock(&notes_lock);
	if (!task)
		return false;
	note = take_back(task);
	put_task_struct(task);
	if (note)
		note_free(note);
	else
		/* The task is working on its note just now: that is over soon. */
		msleep(20);
	return true;
}

/**
 * umacct_way_out_exit() - take back all notes
 *
 * Those who are about to return from one are covered by umacct_probe_drain_end().
 *
 * Context: module exit; every hook on the driver is disarmed and drained.
 */
void umacct_way_out_exit(void)
{
	while (drop_one())
		;
}
