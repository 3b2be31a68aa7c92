// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views: what tasks read about the machine's memory. They report as free what is available to
 * the driver, because programs take MemFree for that although most of the memory may hold page
 * cache that can be reclaimed. Where a limit binds, they report what is left of it.
 *
 * sysinfo(2), /proc/meminfo and a node's meminfo get their figures from
 * si_meminfo(), si_mem_available() and si_meminfo_node(). So do parts of the
 * kernel that decide by them, in the context of whatever task is current: they
 * must have the truth. Each of the three is redirected, and its answer changed
 * only if the call comes from one of the functions that format an answer for
 * user space. What /proc/meminfo says of caches comes from elsewhere: it is changed in
 * the text, so that memory that is called free isn't called cache as well.
 *
 * Call sites are recognised by the name of the function around the return
 * address, which is looked up once for each.
 */
#include <linux/cgroup.h>
#include <linux/kallsyms.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "hooks/possible.h"
#include "hooks/view.h"
#include "ledger/available.h"
#include "ledger/read.h"
#include "ledger/settings.h"

DECLARE_REDIRECT(void, si_meminfo, (struct sysinfo *val));
DECLARE_REDIRECT(void, si_meminfo_node, (struct sysinfo *val, int nid));
DECLARE_REDIRECT(long, si_mem_available, (void));
DECLARE_REDIRECT(int, meminfo_proc_show, (struct seq_file *seq, void *unused));

/* Where the figures go to user space; the compiler may have inlined one into the next. */
static const char *const answering[] = {
	"do_sysinfo",
	"__do_sys_sysinfo",
	"__se_sys_sysinfo",
	"__x64_sys_sysinfo",
	"__ia32_sys_sysinfo",
	"__arm64_sys_sysinfo",
	"__do_compat_sys_sysinfo",
	"__se_compat_sys_sysinfo",
	"__x64_compat_sys_sysinfo",
	"__ia32_compat_sys_sysinfo",
	"__arm64_compat_sys_sysinfo",
	"meminfo_proc_show",
	"node_read_meminfo",
};

/* Call sites that were looked up, a few dozen; two tasks may enter the same one. */
static struct call_site {
	unsigned long address;
	bool answers;
} call_sites[64];
static unsigned int nr_call_sites;
static DEFINE_RAW_SPINLOCK(call_sites_lock);

static bool answers(unsigned long address)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	/* A function of a module reads "name [module]", a clone "name.isra.0". */
	if (strchr(name, ' '))
		return false;
	name[strcspn(name, ".")] = '\0';
	return match_string(answering, ARRAY_SIZE(answering), name) >= 0;
}

static bool is_answer(unsigned long return_address)
{
	/* Pairs with the release below: an entry is there before it is counted. */
	unsigned int i, nr = smp_load_acquire(&nr_call_sites);
	unsigned long flags;
	bool result;

	for (i = 0; i < nr; i++)
		if (call_sites[i].address == return_address)
			return call_sites[i].answers;
	/* The call itself, not what follows it: it may be the function's last instruction. */
	result = answers(return_address - 1);
	raw_spin_lock_irqsave(&call_sites_lock, flags);
	nr = nr_call_sites;
	if (nr < ARRAY_SIZE(call_sites)) {
		call_sites[nr].address = return_address;
		call_sites[nr].answers = result;
		/* Pairs with the acquire above. */
		smp_store_release(&nr_call_sites, nr + 1);
	}
	raw_spin_unlock_irqrestore(&call_sites_lock, flags);
	return result;
}

/**
 * struct view - the figures reported to the current task, in pages
 * @limited: a hard limit binds it
 * @total: no more than this
 * @free: what it could have
 */
struct view {
	bool limited;
	unsigned long total;
	unsigned long free;
};

/* Calls the original: the hook would find that this caller gets no view anyway. */
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
	/* What is called free now isn't called cache as well. */
	val->bufferram -= view->limited ? val->bufferram : min(val->bufferram, moved);
}

void umacct_replace_si_meminfo(struct sysinfo *val)
{
	struct view view;

	probe_enter(&umacct_hook_si_meminfo.probe);
	umacct_original_si_meminfo(val);
	if (is_answer((unsigned long)__builtin_return_address(0)) && view_of_current(&view))
		change_answer(val, &view);
	probe_leave(&umacct_hook_si_meminfo.probe);
}

void umacct_replace_si_meminfo_node(struct sysinfo *val, int nid)
{
	struct view view;

	probe_enter(&umacct_hook_si_meminfo_node.probe);
	umacct_original_si_meminfo_node(val, nid);
	if (is_answer((unsigned long)__builtin_return_address(0)) && view_of_current(&view)) {
		/* What is available is not known for each node. */
		if (num_online_nodes() > 1)
			view.free = min(view.free, val->freeram);
		change_answer(val, &view);
	}
	probe_leave(&umacct_hook_si_meminfo_node.probe);
}

long umacct_replace_si_mem_available(void)
{
	struct view view;
	long available;

	probe_enter(&umacct_hook_si_mem_available.probe);
	available = umacct_original_si_mem_available();
	if (is_answer((unsigned long)__builtin_return_address(0)) && view_of_current(&view))
		available = view.free;
	probe_leave(&umacct_hook_si_mem_available.probe);
	return available;
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
	char *digit = number + width;

	do {
		*--digit = '0' + value % 10;
		value /= 10;
	} while (value);
	while (digit > number)
		*--digit = ' ';
}

/* Takes so many KiB from a line. */
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
	size_t start = seq->count, width;
	unsigned long kib = ULONG_MAX;
	struct view view;
	char *number;
	int err;

	probe_enter(&umacct_hook_meminfo_proc_show.probe);
	err = umacct_original_meminfo_proc_show(seq, unused);
	/* What does not fit is asked for again. */
	if (err || seq_has_overflowed(seq) || !view_of_current(&view))
		goto out;
	if (!view.limited) {
		unsigned long free = global_zone_page_state(NR_FREE_PAGES) << (PAGE_SHIFT - 10);

		number = find_number(seq->buf + start, seq->count - start, "MemFree:", &width);
		kib = number ? read_number(number, width) : 0;
		kib -= min(kib, free);
	}
	change_caches(seq->buf + start, seq->count - start, kib);
out:
	probe_leave(&umacct_hook_meminfo_proc_show.probe);
	return err;
}

/* Is there any account that asks for a view? */
static bool view_wanted(void)
{
	return READ_ONCE(umacct_settings.views);
}

static const struct hook *const view_hooks[] = {
	&umacct_hook_si_meminfo,
	&umacct_hook_si_mem_available,
	&umacct_hook_si_meminfo_node,
	&umacct_hook_meminfo_proc_show,
};

/**
 * umacct_view_possible() - can views be switched on?
 * @why: set to a sentence if not
 *
 * Context: may sleep; under umacct_hook_lock().
 */
bool umacct_view_possible(const char **why)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(view_hooks); i++) {
		if (umacct_hook_possible(view_hooks[i]))
			continue;
		*why = "the kernel's functions that report memory cannot be hooked";
		return false;
	}
	return true;
}

struct hook umacct_hook_si_meminfo = {
	.name = "view",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "si_meminfo",
		REDIRECT(si_meminfo),
	},
};

struct hook umacct_hook_si_mem_available = {
	.name = "view of what is available",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "si_mem_available",
		REDIRECT(si_mem_available),
	},
};

struct hook umacct_hook_si_meminfo_node = {
	.name = "view of a node",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "si_meminfo_node",
		REDIRECT(si_meminfo_node),
	},
};

struct hook umacct_hook_meminfo_proc_show = {
	.name = "view of caches",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "meminfo_proc_show",
		REDIRECT(meminfo_proc_show),
	},
};
