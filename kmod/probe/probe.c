// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks on functions that we don't own.
 *
 * A redirect changes where a call goes: to a replacement in this module, which
 * runs in the caller's own context, may sleep, and calls the original through
 * its thunk in redirects.S. There are two ways to get there:
 *
 *  - Where the function has an ftrace site and the kernel has direct calls, the
 *    site is made to call the entry in redirects.S. That costs a call; no trap.
 *    The thunk enters the original behind the site. Other users of ftrace and
 *    of kprobes see the call as before.
 *
 *    Nobody else can make one there then, BPF programs at a function's end among
 *    them; where somebody has made one before, the function isn't hooked.
 *
 *  - Elsewhere, a kprobe's pre-handler points the instruction pointer at the
 *    replacement. The thunk enters behind the probed instruction if that is only
 *    a NOP or the call to ftrace, so that a call costs one trap. Somebody else's
 *    kprobe there would be hidden that way, because the kprobe core stops at the
 *    first pre-handler that returns non-zero: while there is one, the thunk
 *    enters at the very beginning, and the call that has its mark is let through
 *    to the others.
 *
 * Unloading: nobody may be in our text when it goes. Once a function is unhooked,
 * umacct_probe_drain_begin() lets those get to where they count themselves in, before they
 * may sleep; umacct_probe_drain() waits until as many have counted themselves
 * out; umacct_probe_drain_end() lets the last of them return.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "probe/arch.h"
#include "probe/probe.h"

static int redirect_handler(struct kprobe *kp, struct pt_regs *regs)
{
	struct probe *p = container_of(kp, struct probe, kp);
	/* Not in the kprobe core's list for several at one address, or the last one in it. */
	bool alone = likely(kp->list.next == kp->list.prev);

	/* Who returned where tells nothing: a return probe puts its own address there. */
	if (unlikely(*arch_mark(regs) == ~p->first)) {
		/* What lies about in a register must not pass for a mark later on. */
		*arch_mark(regs) = 0;
		return 0;
	}

	/* Either value is right at any time; see the top of the file. */
	WRITE_ONCE(*p->entry, alone ? p->past : p->first);
	arch_redirect(regs, (unsigned long)p->replacement);
	return 1;
}
NOKPROBE_SYMBOL(redirect_handler);

static int observe_handler(struct kprobe *kp, struct pt_regs *regs)
{
	struct probe *p = container_of(kp, struct probe, kp);

	this_cpu_inc(*p->entered);
	p->observe(regs);
	return 0;
}
NOKPROBE_SYMBOL(observe_handler);

/* Its presence keeps a breakpoint from being optimised into a jump, which could not redirect. */
static void no_optimise(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(no_optimise);

#ifdef CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS
static bool direct_calls = true;
module_param(direct_calls, bool, 0444);
MODULE_PARM_DESC(direct_calls, "hook by ftrace's direct calls where there are any (default: yes), else by kprobes, which another's direct call may bypass");

static int arm_direct(struct probe *p)
{
	struct kprobe kp = { .symbol_name = p->symbol, .flags = KPROBE_FLAG_DISABLED };
	int err;

	if (!direct_calls)
		return -EOPNOTSUPP;
	/* A kprobe that is never enabled resolves the symbol and looks for the site. */
	err = register_kprobe(&kp);
	if (err)
		return err;
	unregister_kprobe(&kp);
	p->past = arch_behind_site(&kp);
	if (!p->past)
		return -EOPNOTSUPP;
	WRITE_ONCE(*p->entry, p->past);
	memset(&p->ops, 0, sizeof(p->ops));
	err = ftrace_set_filter_ip(&p->ops, (unsigned long)kp.addr, 0, 0);
	if (err)
		return err;
	err = umacct_register_direct(&p->ops, (unsigned long)p->enter);
	if (err)
		ftrace_free_filter(&p->ops);
	p->direct = !err;
	return err;
}

static int disarm_direct(struct probe *p)
{
	int err = umacct_unregister_direct(&p->ops, (unsigned long)p->enter);

	if (!err)
		p->direct = false;
	return err;
}
#else
static int arm_direct(struct probe *p)
{
	return -EOPNOTSUPP;
}

static int disarm_direct(struct probe *p)
{
	return 0;
}
#endif

static void reset_kprobe(struct probe *p, struct kprobe *kp)
{
	memset(kp, 0, sizeof(*kp));
	kp->symbol_name = p->symbol;
}

static int arm_kprobe(struct probe *p)
{
	int err;

	reset_kprobe(p, &p->kp);
	p->kp.pre_handler = redirect_handler;
	/*
	 * Nobody may be redirected before the thunk knows where the original is.
	 */
	p->kp.flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(&p->kp);
	if (err)
		return err;
	if (!arch_on_ftrace(&p->kp)) {
		/*
		 * Beside a probe without one, a post_handler on a probe that uses
		 * ftrace takes the other ops of ftrace: one of the two then stays
		 * armed for good. Elsewhere it is needed. Which of both it is shows
		 * only after registering.
		 */
		unregister_kprobe(&p->kp);
		reset_kprobe(p, &p->kp);
		p->kp.pre_handler = redirect_handler;
		p->kp.post_handler = no_optimise;
		p->kp.flags = KPROBE_FLAG_DISABLED;
		err = register_kprobe(&p->kp);
		if (err)
			return err;
	}
	p->first = (unsigned long)p->kp.addr;
	p->past = arch_behind_probe(&p->kp);
	WRITE_ONCE(*p->entry, p->past);
	err = enable_kprobe(&p->kp);
	if (err)
		unregister_kprobe(&p->kp);
	return err;
}

static int arm_observe(struct probe *p)
{
	reset_kprobe(p, &p->kp);
	p->kp.pre_handler = observe_handler;
	return register_kprobe(&p->kp);
}

/**
 * umacct_probe_init() - make ready a probe that was filled in statically
 * @p: the probe
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int umacct_probe_init(struct probe *p)
{
	p->entered = alloc_percpu(u64);
	p->left = alloc_percpu(u64);
	if (p->entered && p->left)
		return 0;
	umacct_probe_destroy(p);
	return -ENOMEM;
}

/**
 * umacct_probe_destroy() - release what umacct_probe_init() took
 * @p: a disarmed and drained probe, or one whose umacct_probe_init() never ran
 *
 * Context: may sleep.
 */
void umacct_probe_destroy(struct probe *p)
{
	free_percpu(p->entered);
	free_percpu(p->left);
	p->entered = NULL;
	p->left = NULL;
}

/*
 * Where a direct call is possible and somebody else has made one (-EBUSY), a kprobe could
 * be bypassed: the trampoline of a BPF program that runs at a function's end calls the
 * function itself, and never comes to where the kprobe sends its caller. If there was no
 * memory, nobody knows.
 */
static bool may_be_kprobe(int err)
{
	return err && err != -ENOENT && err != -EBUSY && err != -ENOMEM;
}

/**
 * umacct_probe_arm() - start hooking
 * @p: a probe that is not armed, or that umacct_probe_disarm() could not disarm
 *
 * The function's module must be loaded (or in MODULE_STATE_COMING).
 *
 * Context: may sleep; the caller serialises arming and disarming.
 * Return: 0, -ENOENT if there is no such symbol, -EBUSY if another's direct call or a live
 *	patch is there, or register_kprobe()'s error.
 */
int umacct_probe_arm(struct probe *p)
{
	int err;

	if (p->armed)
		return 0;
	if (p->replacement) {
		err = arm_direct(p);
		if (may_be_kprobe(err))
			err = arm_kprobe(p);
	} else {
		err = arm_observe(p);
	}
	p->armed = !err;
	return err;
}

/*
 * To take a probe off ftrace, the kernel allocates. If there is nothing to be had, it has
 * counted the probe off already, leaves it in its table, and says so by its address alone:
 * it would be found there when our memory is another's. One that is disabled is taken out
 * of the table and counted no more; what ftrace still calls for finds no probe then.
 */
static void disarm_kprobe(struct probe *p)
{
	kprobe_opcode_t *addr = p->kp.addr;

	unregister_kprobe(&p->kp);
	if (likely(p->kp.addr))
		return;
	p->kp.addr = addr;
	p->kp.flags |= KPROBE_FLAG_DISABLED;
	unregister_kprobe(&p->kp);
}

static void set_stuck(struct probe *p, int err)
{
	if (p->stuck == (bool)err)
		return;
	p->stuck = err;
	if (!err) {
		module_put(THIS_MODULE);
		return;
	}
	__module_get(THIS_MODULE);
	pr_err("cannot unhook %s, error %d: umacct stays loaded\n", p->symbol, err);
}

/**
 * umacct_probe_disarm() - stop hooking
 * @p: a probe; nothing happens if it isn't armed
 *
 * No call is hooked afterwards, but tasks may still be on their way into, in, or
 * out of the replacement: see umacct_probe_drain(). Where the kernel can't unhook the function,
 * which is after a bug in ftrace alone, it goes on calling the replacement, and umacct
 * can't be unloaded.
 *
 * Context: may sleep; the caller serialises arming and disarming.
 */
void umacct_probe_disarm(struct probe *p)
{
	unsigned int flags;
	int err = 0;

	if (!p->armed)
		return;
	/* It can't be put off: what it takes may come from the kernel's reserves. */
	flags = memalloc_noreclaim_save();
	if (p->direct)
		err = disarm_direct(p);
	else
		disarm_kprobe(p);
	memalloc_noreclaim_restore(flags);
	p->armed = err;
	set_stuck(p, err);
}

static u64 percpu_sum(u64 __percpu *counter)
{
	u64 sum = 0;
	int cpu;

	if (!counter)
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(counter, cpu));
	return sum;
}

/**
 * umacct_probe_drain_begin() - wait for tasks that are on their way into a replacement
 *
 * Call between the last umacct_probe_disarm() and the first umacct_probe_drain().
 *
 * Context: may sleep.
 */
void umacct_probe_drain_begin(void)
{
	synchronize_rcu_tasks();
}

/* While the function calls the replacement, our text has to stay, be it for ever. */
static void disarm_at_last(struct probe *p)
{
	if (likely(!p->armed))
		return;
	for (umacct_probe_disarm(p); p->armed; umacct_probe_disarm(p))
		ssleep(1);
	umacct_probe_drain_begin();
}

/**
 * umacct_probe_drain() - wait until no task is inside a replacement
 * @p: a probe that was disarmed, or could not be
 *
 * An allocation under memory pressure may take long; there is no way to cut it
 * short, so this says every ten seconds what it waits for.
 *
 * Context: may sleep.
 */
void umacct_probe_drain(struct probe *p)
{
	unsigned long next = jiffies + 10 * HZ;

	if (!p->replacement || !p->left)
		return;
	disarm_at_last(p);
	/* left before entered: a task that enters and leaves in between is seen as inside. */
	for (;;) {
		u64 left = percpu_sum(p->left);

		/* Pairs with nothing: the sums only have to be taken in this order. */
		smp_rmb();
		if (left == percpu_sum(p->entered))
			return;
		msleep(20);
		if (time_after(jiffies, next)) {
			pr_info("waiting for callers of %s\n", p->symbol);
			next = jiffies + 10 * HZ;
		}
	}
}

/**
 * umacct_probe_drain_end() - wait for tasks that are returning from a replacement
 *
 * Call once, after the last umacct_probe_drain() and before the module's text goes.
 *
 * Context: may sleep.
 */
void umacct_probe_drain_end(void)
{
	synchronize_rcu_tasks();
}

/**
 * umacct_probe_calls() - how often the hook was reached
 * @p: the probe
 *
 * Context: any.
 * Return: the count since umacct_probe_init().
 */
u64 umacct_probe_calls(const struct probe *p)
{
	return percpu_sum(p->entered);
}

/**
 * umacct_probe_missed() - calls that the kernel could not deliver
 * @p: the probe
 *
 * Context: any; the caller serialises with umacct_probe_arm().
 * Return: the count since the probe was armed.
 */
u64 umacct_probe_missed(const struct probe *p)
{
	if (!p->armed || p->direct)
		return 0;
	return p->kp.nmissed;
}

/* What the self-test hooks: a function that does nothing else. */
static noinline void selftest_target(void)
{
	barrier();
}

static void selftest_seen(struct pt_regs *regs)
{
}
NOKPROBE_SYMBOL(selftest_seen);

static struct probe selftest = {
	.symbol = KBUILD_MODNAME ":selftest_target",
	.observe = selftest_seen,
};

/*
 * The sysctl kernel.ftrace_enabled would switch off what is armed, and nobody would be told.
 * It can't be cleared while something that must stay is registered, nor can that be while it
 * is cleared. Direct calls can't say of themselves that they are to stay.
 */
#if defined(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS) || defined(CONFIG_KPROBES_ON_FTRACE)
static void notrace stays_seen(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			       struct ftrace_regs *regs)
{
}

/* Nobody calls it: what is registered costs nothing. */
static noinline void stays_here(void)
{
	barrier();
}

static struct ftrace_ops stays = {
	.func = stays_seen,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

static int keep_ftrace_on(void)
{
	int err = ftrace_set_filter_ip(&stays, (unsigned long)stays_here, 0, 0);

	if (err)
		return err;
	err = register_ftrace_function(&stays);
	if (err) {
		ftrace_free_filter(&stays);
		if (err == -EBUSY)
			pr_err("kernel.ftrace_enabled is 0: calls would not be seen\n");
	}
	return err;
}

static void let_ftrace_go(void)
{
	unregister_ftrace_function(&stays);
	ftrace_free_filter(&stays);
}
#else
static int keep_ftrace_on(void)
{
	return 0;
}

static void let_ftrace_go(void)
{
}
#endif

/**
 * umacct_probe_selftest() - do probes fire?
 *
 * Kprobes can be switched off for the whole machine behind our back
 * (debugfs/kprobes/enabled).
 *
 * Context: may sleep.
 * Return: true if a probe on our own text fired just now.
 */
bool umacct_probe_selftest(void)
{
	u64 before = umacct_probe_calls(&selftest);

	selftest_target();
	return umacct_probe_calls(&selftest) != before;
}

/**
 * umacct_probe_needs_kprobes() - would calls be missed if kprobes were switched off?
 * @p: the probe, armed
 *
 * Context: the caller serialises with umacct_probe_arm().
 * Return: false if ftrace calls it directly.
 */
bool umacct_probe_needs_kprobes(const struct probe *p)
{
	return !p->direct;
}

/**
 * umacct_probe_system_init() - prepare what all probes share
 *
 * Context: module initialisation, before the first umacct_probe_arm().
 * Return: 0 or an error.
 */
int umacct_probe_system_init(void)
{
	int err;

	err = umacct_probe_init(&selftest);
	if (err)
		return err;
	err = umacct_probe_arm(&selftest);
	if (err) {
		if (err != -ENOMEM)
			pr_err("kprobes don't work on this kernel: error %d\n", err);
		goto err_destroy;
	}
	err = keep_ftrace_on();
	if (err)
		goto err_disarm;
	return 0;

err_disarm:
	umacct_probe_disarm(&selftest);
err_destroy:
	umacct_probe_destroy(&selftest);
	return err;
}

/**
 * umacct_probe_system_exit() - undo umacct_probe_system_init()
 *
 * Context: module exit.
 */
void umacct_probe_system_exit(void)
{
	let_ftrace_go();
	umacct_probe_disarm(&selftest);
	umacct_probe_destroy(&selftest);
}

/**
 * umacct_probe_resolve() - find a function's address
 * @symbol: "module:symbol" or "symbol"
 * @address: set if it is there and can be probed
 *
 * kallsyms_lookup_name() isn't exported; registering a kprobe resolves too.
 *
 * Context: may sleep.
 * Return: 0, -ENOENT if there is no such symbol, or register_kprobe()'s error.
 */
int umacct_probe_resolve(const char *symbol, unsigned long *address)
{
	struct kprobe kp = { .symbol_name = symbol, .flags = KPROBE_FLAG_DISABLED };
	int err = register_kprobe(&kp);

	if (err)
		return err;
	unregister_kprobe(&kp);
	*address = (unsigned long)kp.addr;
	return 0;
}
