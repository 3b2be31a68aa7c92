// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views: what tasks of a limited cgroup are told about the machine's memory.
 *
 * sysinfo(2), /proc/meminfo and a node's meminfo get their figures from
 * si_meminfo(), si_mem_available() and si_meminfo_node(). So do parts of the
 * kernel that decide by them, in the context of whatever task is current: they
 * must have the truth. Each of the three is redirected, and its answer changed
 * only if the call comes from one of the functions that format an answer for
 * user space.
 *
 * Call sites are recognised by the name of the function around the return
 * address, which is looked up once for each.
 */
#include <linux/cgroup.h>
#include <linux/kallsyms.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "hooks/view.h"
#include "ledger/account.h"
#include "ledger/lock.h"
#include "ledger/settings.h"

DECLARE_REDIRECT(void, si_meminfo, (struct sysinfo *val));
DECLARE_REDIRECT(void, si_meminfo_node, (struct sysinfo *val, int nid));
DECLARE_REDIRECT(long, si_mem_available, (void));

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
 * struct view - what the current task is told, in pages
 * @total: no more than this
 * @left: of which no more than this is free
 */
struct view {
	unsigned long total;
	unsigned long left;
};

static bool view_of_current(struct view *view)
{
	u64 left = UMACCT_UNLIMITED, effective;
	struct account *account;
	bool asked = false;

	if ((current->flags & PF_KTHREAD) || !current->mm)
		return false;
	rcu_read_lock();
	raw_spin_lock(&ledger_lock);
	account = account_nearest_locked(task_dfl_cgroup(current));
	account_update_locked(account);
	effective = account->effective;
	for (; account; account = account->parent) {
		u64 held = account->usage + account->pending;

		asked |= account->settings.view;
		if (account->settings.hard != UMACCT_UNLIMITED)
			left = min(left, account->settings.hard -
					 min(account->settings.hard, held));
	}
	raw_spin_unlock(&ledger_lock);
	rcu_read_unlock();
	if (!asked || effective == UMACCT_UNLIMITED)
		return false;
	view->total = effective >> PAGE_SHIFT;
	view->left = left >> PAGE_SHIFT;
	return true;
}

static void limit_answer(struct sysinfo *val, unsigned long return_address)
{
	struct view view;

	if (!is_answer(return_address) || !view_of_current(&view))
		return;
	val->totalram = min_t(unsigned long, val->totalram, view.total);
	val->freeram = min_t(unsigned long, val->freeram, view.left);
	val->bufferram = min_t(unsigned long, val->bufferram, val->totalram - val->freeram);
}

void replace_si_meminfo(struct sysinfo *val)
{
	probe_enter(&hook_si_meminfo.probe);
	original_si_meminfo(val);
	limit_answer(val, (unsigned long)__builtin_return_address(0));
	probe_leave(&hook_si_meminfo.probe);
}

void replace_si_meminfo_node(struct sysinfo *val, int nid)
{
	probe_enter(&hook_si_meminfo_node.probe);
	original_si_meminfo_node(val, nid);
	limit_answer(val, (unsigned long)__builtin_return_address(0));
	probe_leave(&hook_si_meminfo_node.probe);
}

long replace_si_mem_available(void)
{
	struct view view;
	long available;

	probe_enter(&hook_si_mem_available.probe);
	available = original_si_mem_available();
	if (is_answer((unsigned long)__builtin_return_address(0)) && view_of_current(&view))
		available = min_t(long, available, view.left);
	probe_leave(&hook_si_mem_available.probe);
	return available;
}

/* Is there any account that asks for a view? */
static bool view_wanted(void)
{
	return READ_ONCE(settings.views);
}

static const struct hook *const view_hooks[] = {
	&hook_si_meminfo,
	&hook_si_mem_available,
	&hook_si_meminfo_node,
};

/**
 * view_possible() - can views be switched on?
 * @why: set to a sentence if not
 *
 * Context: may sleep; under hook_lock().
 */
bool view_possible(const char **why)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(view_hooks); i++) {
		if (hook_possible(view_hooks[i]))
			continue;
		*why = "the kernel's functions that tell how much memory there is can't be hooked";
		return false;
	}
	return true;
}

struct hook hook_si_meminfo = {
	.name = "view",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "si_meminfo",
		REDIRECT(si_meminfo),
	},
};

struct hook hook_si_mem_available = {
	.name = "view of what is available",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "si_mem_available",
		REDIRECT(si_mem_available),
	},
};

struct hook hook_si_meminfo_node = {
	.name = "view of a node",
	.module = HOOK_KERNEL,
	.wanted = view_wanted,
	.probe = {
		.symbol = "si_meminfo_node",
		REDIRECT(si_meminfo_node),
	},
};
