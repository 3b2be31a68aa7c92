// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views: what tasks read about the machine's memory. They report as free what is available to
 * the driver, because programs take MemFree for that although most of the memory may hold page
 * cache that can be reclaimed. Where a limit binds, or memory.max of a cgroup that is charged, they
 * report what is left of it.
 *
 * sysinfo(2), /proc/meminfo and a node's meminfo get their figures from
 * si_meminfo(), si_mem_available() and si_meminfo_node(). So do parts of the
 * kernel that decide by them, in the context of whatever task is current: they
 * must have the truth. So the functions that format an answer for user space are redirected, and
 * note that they are under way; the three that have the figures are redirected as well, and change
 * theirs while one of those is, or the system call is sysinfo(2). What /proc/meminfo says of caches
 * comes from elsewhere: it is changed in the text, so that memory that is called free isn't called
 * cache as well.
 */
#include <asm/syscall.h>
#include <linux/cgroup.h>
#include <linux/compat.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/unistd.h>

#include "hooks/call.h"
#include "hooks/hook.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "ledger/settings.h"
#include "memcg.h"

/* The number in i386's and 32-bit arm's tables. */
#define COMPAT_NR_SYSINFO	116

/* Not a hook of that call: it writes to the task's memory, which may take for ever. */
static bool in_sysinfo(void)
{
	if (!in_task() || !current->mm || (current->flags & PF_KTHREAD))
		return false;
	return syscall_get_nr(current, current_pt_regs()) ==
	       (in_compat_syscall() ? COMPAT_NR_SYSINFO : __NR_sysinfo);
}

static bool answers(void)
{
	const struct call *call = call_current();

	return (call && call->answering) || in_sysinfo();
}

/**
 * struct view - the figures reported to the current task, in pages
 * @limited: a hard limit binds it, or memory.max of a cgroup that is charged
 * @total: no more than this
 * @free: what it could have
 */
struct view {
	bool limited;
	unsigned long total;
	unsigned long free;
};

/* Calls the original: the hook would take this for another part of the answer. */
static long mem_available(void)
{
	return likely(READ_ONCE(umacct_original_si_mem_available_entry)) ?
	       umacct_original_si_mem_available() : si_mem_available();
}

static bool view_of_current(struct view *view)
{
	struct account_bounds bounds;
	u64 available;

	if ((current->flags & PF_KTHREAD) || !current->mm)
		return false;
	rcu_read_lock();
	umacct_read_bounds(task_dfl_cgroup(current), &bounds);
	rcu_read_unlock();
	if (!bounds.view)
		return false;
	if (bounds.charged)
		umacct_memcg_bound_current(&bounds.effective, &bounds.left);
	available = umacct_available_of(mem_available());
	available -= min(available, bounds.reserve);
	view->limited = bounds.effective != UMACCT_UNLIMITED;
	view->total = min_t(u64, bounds.effective >> PAGE_SHIFT, ULONG_MAX);
	view->free = min(bounds.left, available) >> PAGE_SHIFT;
	return true;
}

static void change_answer(struct sysinfo *val, const struct view *view)
{
	unsigned long moved;

	val->totalram = min(val->totalram, view->total);
	moved = view->free - min(view->free, val->freeram);
	val->freeram = min(view->free, val->totalram);
	/* Memory that is reported as free now must not be reported as cache as well. */
	val->bufferram -= view->limited ? val->bufferram : min(val->bufferram, moved);
}

void umacct_replace_si_meminfo(struct sysinfo *val)
{
	INSIDE(si_meminfo);
	struct view view;

	umacct_original_si_meminfo(val);
	if (answers() && view_of_current(&view))
		change_answer(val, &view);
}

void umacct_replace_si_meminfo_node(struct sysinfo *val, int nid)
{
	INSIDE(si_meminfo_node);
	struct view view;

	umacct_original_si_meminfo_node(val, nid);
	if (answers() && view_of_current(&view)) {
		/* The available memory of each node is not known. */
		if (num_online_nodes() > 1)
			view.free = min(view.free, val->freeram);
		change_answer(val, &view);
	}
}

long umacct_replace_si_mem_available(void)
{
	INSIDE(si_mem_available);
	long available = umacct_original_si_mem_available();
	struct view view;

	return answers() && view_of_current(&view) ? view.free : available;
}

/* A line of /proc/meminfo: its name, and a number of KiB, right-aligned. */
static char *find_number(char *text, size_t len, const char *name, size_t *width)
{
	char *line = strnstr(text, name, len);
	char *end;

	if (!line || (line != text && line[-1] != '\n'))
		return NULL;
	line += strlen(name);
	end = memchr(line, 'k', text + len - line);
	if (!end || end[-1] != ' ')
		return NULL;
	*width = end - 1 - line;
	return line;
}

static unsigned long read_number(const char *number, size_t width)
{
	unsigned long value = 0;

	for (; width; number++, width--)
		if (*number != ' ')
			value = value * 10 + *number - '0';
	return value;
}

/* Never more than what was there, so that it fits. */
static void write_number(char *number, size_t width, unsigned long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%*lu", (int)min(width, sizeof(text) - 1), value);
	memcpy(number, text, min(width, sizeof(text) - 1));
}

/* Subtracts that many KiB from a line. */
static void take_from(char *text, size_t len, const char *name, unsigned long *kib)
{
	unsigned long value, taken;
	size_t width;
	char *number = find_number(text, len, name, &width);

	if (!number)
		return;
	value = read_number(number, width);
	taken = min(value, *kib);
	write_number(number, width, value - taken);
	*kib -= taken;
}

/* The parts of what a program adds up as cache, in the order in which they are given back. */
static void change_caches(char *text, size_t len, unsigned long kib)
{
	unsigned long slab;

	take_from(text, len, "Cached:", &kib);
	take_from(text, len, "Buffers:", &kib);
	slab = kib;
	take_from(text, len, "KReclaimable:", &slab);
	take_from(text, len, "SReclaimable:", &kib);
}

int umacct_replace_meminfo_proc_show(struct seq_file *seq, void *unused)
{
	INSIDE(meminfo_proc_show);
	size_t start = seq->count, width;
	unsigned long kib = ULONG_MAX;
	struct call call = { .answering = true };
	struct view view;
	char *number;
	int err;

	call_begin(&call);
	err = umacct_original_meminfo_proc_show(seq, unused);
	call_end(&call);
	/* An answer that did not fit is requested again. */
	if (err || seq_has_overflowed(seq) || !view_of_current(&view))
		return err;
	if (!view.limited) {
		unsigned long free = global_zone_page_state(NR_FREE_PAGES) << (PAGE_SHIFT - 10);

		number = find_number(seq->buf + start, seq->count - start, "MemFree:", &width);
		kib = number ? read_number(number, width) : 0;
		kib -= min(kib, free);
	}
	change_caches(seq->buf + start, seq->count - start, kib);
	return err;
}

/* The arguments and the result depend on the kernel, and are passed through. */
unsigned long umacct_replace_node_meminfo(unsigned long a, unsigned long b, unsigned long c)
{
	INSIDE(node_meminfo);
	struct call call = { .answering = true };
	unsigned long result;

	call_begin(&call);
	result = umacct_original_node_meminfo(a, b, c);
	call_end(&call);
	return result;
}

/* Is there any account that asks for a view? */
bool umacct_view_wanted(void)
{
	return READ_ONCE(umacct_settings.views);
}

/* Can views be switched on? Under umacct_hook_lock(). */
bool umacct_view_possible(const char **why)
{
	struct hook *hook;

	for_each_hook(hook) {
		if (hook->wanted != umacct_view_wanted || umacct_hook_can_be_armed(hook))
			continue;
		*why = "the kernel's functions that report memory cannot be hooked";
		return false;
	}
	return true;
}
