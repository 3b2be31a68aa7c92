// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that a task does when its system call has ended and it returns to user space.
 *
 * Throttling: a task that allocates above a soft limit has to wait, as above memory.high, and
 * at the same place. The driver allocates with locks held that its users share, so that is no
 * place to sleep.
 *
 * Shortages: where a limit refuses a request, or the driver finds no memory, the resource manager
 * asks again for the same in smaller pages, within the same call. Whether the request failed is known
 * when the call is over: then the last shortage is reported, unless as much was allocated since.
 *
 * An allocation only notes the one or the other, as work that the kernel has the task do on
 * its way back (task_work). No lock is held there, and no other task waits for it. A fatal
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

#include "hooks/hook.h"
#include "hooks/way_out.h"
#include "ledger/base.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "probe/probe.h"

/**
 * struct note - what a task has still to do
 * @work: by which the task comes to it
 * @listed: in notes, until the task has done it
 * @task: whose; lives at least as long
 * @penalty_ns: how long to wait for being above a soft limit
 * @penalty_id: the account that the wait counts for
 * @shortage: what is to be reported; of no type if there is nothing
 */
struct note {
	struct callback_head work;
	struct list_head listed;
	struct task_struct *task;
	u64 penalty_ns;
	u64 penalty_id;
	struct shortage shortage;
};

atomic_t umacct_way_out_shortages;

static DEFINE_SPINLOCK(notes_lock);
static LIST_HEAD(notes);

static bool callable;

static void set_shortage(struct note *note, const struct shortage *shortage)
{
	if (!note->shortage.type && shortage->type)
		atomic_inc(&umacct_way_out_shortages);
	else if (note->shortage.type && !shortage->type)
		atomic_dec(&umacct_way_out_shortages);
	note->shortage = *shortage;
}

static void forget_shortage(struct note *note)
{
	set_shortage(note, &(struct shortage) { });
}

static void note_free(struct note *note)
{
	forget_shortage(note);
	spin_lock(&notes_lock);
	list_del(&note->listed);
	spin_unlock(&notes_lock);
	kfree(note);
}

static void set_penalty(struct note *note, u64 penalty_ns, u64 account_id)
{
	if (penalty_ns <= note->penalty_ns)
		return;
	note->penalty_ns = penalty_ns;
	note->penalty_id = account_id;
}

static void report(struct note *note)
{
	const u64 account_id = note->shortage.account_id;

	if (note->shortage.type)
		set_penalty(note, umacct_refusal_report(&note->shortage), account_id);
	forget_shortage(note);
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

	report(note);
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

static struct note *note_alloc(void)
{
	struct note *note = kzalloc(sizeof(*note), GFP_LEDGER);

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
	report(note);
	note_free(note);
}

static bool has_way_out(void)
{
	return callable && !(current->flags & PF_KTHREAD);
}

/*
 * Has the current task, which allocated above an account's soft limit, wait; the longest of a
 * system call counts. If there is no memory to note it in, the task doesn't wait this time. May
 * sleep.
 */
void umacct_way_out_throttled(u64 penalty_ns, u64 account_id)
{
	struct note *note;

	if (!has_way_out())
		return;
	note = take_back(current) ?: note_alloc();
	if (!note)
		return;
	set_penalty(note, penalty_ns, account_id);
	put_back(note);
}

/*
 * A request of the current task gets no memory; there is no event if @shortage has no type. Of one
 * system call, the last such request is reported, if any. If there is no memory to note it, or no
 * way out, it is reported at once. May sleep; the driver's locks may be held.
 */
void umacct_way_out_short(const struct shortage *shortage)
{
	struct note *note = NULL;

	if (!shortage->type)
		return;
	if (has_way_out())
		note = take_back(current) ?: note_alloc();
	if (!note) {
		umacct_refusal_report(shortage);
		return;
	}
	set_shortage(note, shortage);
	put_back(note);
}

/* umacct_way_out_short() for @pages, in blocks of @block, that the driver had no memory for. */
void umacct_way_out_failed(u64 account_id, u64 bytes, u64 pages, u64 block)
{
	const struct shortage shortage = {
		.type = UMACCT_EVENT_FAILED,
		.account_id = account_id,
		.bytes = bytes,
		.usage = available_now(),
		.pages = round_up(pages, block),
		.block = block,
	};

	umacct_way_out_short(&shortage);
}

/*
 * The driver had memory for @pages, and some task has a shortage to report. A try in larger blocks
 * was rounded up: it may count up to a block more than @pages.
 */
void umacct_way_out_had_memory(u64 pages)
{
	struct note *note;

	if (!has_way_out())
		return;
	note = take_back(current);
	if (!note)
		return;
	if (pages + note->shortage.block > note->shortage.pages)
		forget_shortage(note);
	if (note->shortage.type || note->penalty_ns)
		put_back(note);
	else
		note_free(note);
}

/* Can throttles be set? */
bool umacct_throttle_possible(const char **why)
{
	if (callable)
		return true;
	*why = "the kernel's task_work_add() cannot be called, so tasks cannot wait";
	return false;
}

/* Finds the kernel's functions, before a hook is armed. */
void umacct_way_out_init(void)
{
	callable = !umacct_probe_resolve("task_work_add", &umacct_original_task_work_add_entry) &&
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

/*
 * Takes back all notes, when every hook on the driver is disarmed and drained. Those who are about
 * to return from one are covered by umacct_probe_wait().
 */
void umacct_way_out_exit(void)
{
	while (drop_one())
		;
}
