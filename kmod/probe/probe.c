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
 *    No other user can make one there then, BPF programs at a function's end among
 *    them; where one exists already, the function isn't hooked.
 *
 *  - Elsewhere, a kprobe's pre-handler points the instruction pointer at the
 *    replacement. The thunk enters behind the probed instruction if that is only
 *    a NOP or the call to ftrace, so that a call costs one trap. Another user's
 *    kprobe there would be hidden that way, because the kprobe core stops at the
 *    first pre-handler that returns non-zero: while there is one, the thunk
 *    enters at the very beginning, and the call that has its mark is let through
 *    to the others.
 *
 * Unloading: no task may be in our text when it goes. Once a function is unhooked,
 * umacct_probe_wait() lets those get to where they count themselves in, before they
 * may sleep; umacct_probe_drain() waits until as many have counted themselves
 * out; another umacct_probe_wait() lets the last of them return.
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

	/* Return addresses prove nothing: a return probe puts its own there. */
	if (unlikely(*arch_mark(regs) == ~p->first)) {
		/* A stale register must not pass for a mark later on. */
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

/*
 * kallsyms_lookup_name() isn't exported; registering a kprobe looks a symbol up, too, and this one is
 * never enabled. To let go of it takes a grace period of RCU: they are let go of together.
 */
static struct kprobe *lookups[64];
static unsigned int nr_lookups;

/* Lets go of what was looked up. May sleep; the caller serialises with looking up and arming. */
void umacct_probe_forget_lookups(void)
{
	if (!nr_lookups)
		return;
	unregister_kprobes(lookups, nr_lookups);
	while (nr_lookups)
		kfree(lookups[--nr_lookups]);
}

/* The result stays valid until the above. */
static int look_up(const char *symbol, const struct kprobe **found)
{
	struct kprobe *kp = kzalloc(sizeof(*kp), GFP_KERNEL);
	int err;

	if (!kp)
		return -ENOMEM;
	if (nr_lookups == ARRAY_SIZE(lookups))
		umacct_probe_forget_lookups();
	kp->symbol_name = symbol;
	kp->flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(kp);
	if (err) {
		kfree(kp);
		return err;
	}
	lookups[nr_lookups++] = kp;
	*found = kp;
	return 0;
}

static bool direct_calls = IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS);
module_param(direct_calls, bool, 0444);
MODULE_PARM_DESC(direct_calls, "hook by ftrace's direct calls where there are any (default: yes), else by kprobes, which another's direct call may bypass");

static int arm_direct(struct probe *p)
{
	const struct kprobe *kp;
	int err;

	if (!direct_calls)
		return -EOPNOTSUPP;
	err = look_up(p->symbol, &kp);
	if (err)
		return err;
	p->past = arch_behind_site(kp);
	if (!p->past)
		return -EOPNOTSUPP;
	WRITE_ONCE(*p->entry, p->past);
	memset(&p->ops, 0, sizeof(p->ops));
	err = ftrace_set_filter_ip(&p->ops, (unsigned long)kp->addr, 0, 0);
	if (err)
		return err;
	err = umacct_register_direct(&p->ops, (unsigned long)p->enter);
	if (err)
		ftrace_free_filter(&p->ops);
	p->direct = !err;
	return err;
}

static void set_unwaited(struct probe *p, bool unwaited)
{
	unsigned long flags = p->ops.flags & ~(FTRACE_OPS_FL_DYNAMIC | FTRACE_OPS_FL_STUB);

	WRITE_ONCE(p->ops.flags, flags | (unwaited ? FTRACE_OPS_FL_STUB : FTRACE_OPS_FL_DYNAMIC));
	p->unwaited = unwaited;
}

static void free_filter(struct probe *p)
{
	if (p->unwaited)
		ftrace_free_filter(&p->ops);
	p->unwaited = false;
}

static int disarm_direct(struct probe *p)
{
	int err = umacct_unregister_direct(&p->ops, (unsigned long)p->enter);

	if (err) {
		set_unwaited(p, false);
		return err;
	}
	p->direct = false;
	if (!p->unwaited)
		ftrace_free_filter(&p->ops);
	return 0;
}

static int register_redirect(struct probe *p, kprobe_post_handler_t post_handler)
{
	p->kp = (struct kprobe) {
		.symbol_name = p->symbol,
		.pre_handler = redirect_handler,
		.post_handler = post_handler,
		/* No call may be redirected before the thunk knows where the original is. */
		.flags = KPROBE_FLAG_DISABLED,
	};
	return register_kprobe(&p->kp);
}

static int arm_kprobe(struct probe *p)
{
	int err;

	/* A kprobe beside another one would be of the kind for several. */
	umacct_probe_forget_lookups();
	err = register_redirect(p, NULL);
	if (err)
		return err;
	if (!arch_on_ftrace(&p->kp)) {
		/*
		 * Only a breakpoint needs the post_handler; whether the probe is one shows after
		 * registering. On ftrace, a post_handler selects other ops than those of a probe
		 * without one at the same place, and one of the two would stay armed for good.
		 */
		unregister_kprobe(&p->kp);
		err = register_redirect(p, no_optimise);
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
	p->kp = (struct kprobe) { .symbol_name = p->symbol, .pre_handler = observe_handler };
	return register_kprobe(&p->kp);
}

/* They stay from the first time that it is armed. */
static bool has_counts(struct probe *p)
{
	p->entered = p->entered ?: alloc_percpu(u64);
	p->left = p->left ?: alloc_percpu(u64);
	return p->entered && p->left;
}

/* Frees what a probe has, that is disarmed and drained, or was never armed. */
void umacct_probe_destroy(struct probe *p)
{
	free_percpu(p->entered);
	free_percpu(p->left);
	p->entered = NULL;
	p->left = NULL;
}

/*
 * A direct call of another user (-EBUSY) means that a kprobe could
 * be bypassed: the trampoline of a BPF program that runs at a function's end calls the
 * function itself, and never comes to where the kprobe sends its caller. Without memory
 * (-ENOMEM), that is not known.
 */
static bool may_be_kprobe(int err)
{
	return err && err != -ENOENT && err != -EBUSY && err != -ENOMEM;
}

/*
 * Starts hooking, unless that goes on. The function's module must be loaded (or in
 * MODULE_STATE_COMING). Returns 0, -ENOENT if there is no such symbol, -EBUSY if another's direct
 * call or a live patch is there, or register_kprobe()'s error. May sleep; the caller serialises
 * arming and disarming.
 */
int umacct_probe_arm(struct probe *p)
{
	int err;

	if (p->armed)
		return 0;
	if (!has_counts(p))
		return -ENOMEM;
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
 * The kernel allocates to take a probe off ftrace. If there is nothing to be had, it has
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

/*
 * Prepares umacct_probe_disarm() for many probes that go together. ftrace waits for RCU tasks, with
 * its mutex held, for each direct call of a module's that it takes away, which is a tenth of a second.
 * It does so for ops that are marked as dynamic, because it may still be calling them from its list: it
 * passes over those that are marked as stubs. synchronize_rcu() must follow before
 * umacct_probe_disarm(), and umacct_probe_wait() and umacct_probe_drain() after that. Where
 * another tracer is at the function, the probe is not called any more from here on.
 */
void umacct_probe_disarm_soon(struct probe *p)
{
	if (p->armed && p->direct)
		set_unwaited(p, true);
}

/*
 * Stops hooking, if the probe is armed. No call is hooked afterwards, but tasks may still be on
 * their way into, in, or out of the replacement: see umacct_probe_drain(). Where the kernel can't
 * unhook the function, which is after a bug in ftrace alone, it goes on calling the replacement,
 * and umacct can't be unloaded. May sleep; the caller serialises arming and disarming.
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
	unsigned int cpu;

	if (!counter)
		return 0;
	/* The macro for possible processors calls a function for each. */
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (likely(cpu_possible(cpu)))
			sum += READ_ONCE(*per_cpu_ptr(counter, cpu));
	return sum;
}

/*
 * Waits for tasks that are on their way into a replacement, between the last umacct_probe_disarm()
 * and the first umacct_probe_drain(); and for those that return from one, after the last of these.
 */
void umacct_probe_wait(void)
{
	synchronize_rcu_tasks();
}

/* Our text has to stay while the function calls the replacement, for ever if need be. */
static void disarm_at_last(struct probe *p)
{
	if (likely(!p->armed))
		return;
	for (umacct_probe_disarm(p); p->armed; umacct_probe_disarm(p))
		ssleep(1);
	umacct_probe_wait();
}

/*
 * Waits until no task is inside the replacement of a probe that was disarmed, or could not be. An
 * allocation under memory pressure may take long; there is no way to cut it short, so this says
 * every ten seconds what it waits for.
 */
void umacct_probe_drain(struct probe *p)
{
	unsigned long next = jiffies + 10 * HZ;

	if (!p->replacement || !p->left)
		return;
	disarm_at_last(p);
	free_filter(p);
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

/* How often the hook was reached, ever. */
u64 umacct_probe_calls(const struct probe *p)
{
	return percpu_sum(p->entered);
}

/* The function that the self-test hooks; it does nothing else. */
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
 * The sysctl kernel.ftrace_enabled would switch off what is armed, without a notification.
 * It can't be cleared while something that must stay is registered, nor can that be while it
 * is cleared. Direct calls can't say of themselves that they are to stay.
 */
#if defined(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS) || defined(CONFIG_KPROBES_ON_FTRACE)
static void notrace stays_seen(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			       struct ftrace_regs *regs)
{
}

/* Never called: a registered probe costs nothing. */
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

/*
 * Do probes fire? Looks whether one on our own text does. Kprobes can be switched off for the whole
 * machine behind our back (debugfs/kprobes/enabled). May sleep.
 */
bool umacct_probe_selftest(void)
{
	u64 before = umacct_probe_calls(&selftest);

	selftest_target();
	return umacct_probe_calls(&selftest) != before;
}

/* Would calls be missed if kprobes were switched off? No, where ftrace calls the probe directly. */
bool umacct_probe_needs_kprobes(const struct probe *p)
{
	return !p->direct;
}

/* Prepares what all probes share, before the first umacct_probe_arm(). */
int umacct_probe_system_init(void)
{
	int err;

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

void umacct_probe_system_exit(void)
{
	let_ftrace_go();
	umacct_probe_disarm(&selftest);
	umacct_probe_destroy(&selftest);
}

/*
 * Finds the address of "module:symbol" or "symbol" that can be probed. Returns 0, -ENOENT if there is
 * no such symbol, or register_kprobe()'s error. umacct_probe_forget_lookups() must follow, some time.
 * May sleep; the caller serialises with others that look up or arm.
 */
int umacct_probe_resolve(const char *symbol, unsigned long *address)
{
	const struct kprobe *kp;
	int err = look_up(symbol, &kp);

	if (!err)
		*address = (unsigned long)kp->addr;
	return err;
}
