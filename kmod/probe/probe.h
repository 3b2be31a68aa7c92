/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_PROBE_H
#define UMACCT_PROBE_H

#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include "compat.h"

/**
 * struct probe - one function of the kernel or of another module that we hook
 * @symbol: "module:symbol", or "symbol" of the kernel itself
 * @replacement: function of the same signature that runs instead of the probed
 *	one, in its caller's context, from probe_enter() to probe_leave()
 * @entry: with @replacement: where the original's thunk jumps to
 * @enter: with @replacement: what a direct call from the function's entry lands on
 * @observe: called at the function's entry; may not sleep
 *
 * Either @replacement is set, see REDIRECT(), or @observe.
 */
struct probe {
	const char *symbol;
	void *replacement;
	unsigned long *entry;
	void (*enter)(void);
	void (*observe)(struct pt_regs *regs);

	/* private to probe.c */
	struct kprobe kp;
	struct ftrace_ops ops;
	bool direct;			/* armed through @ops, not @kp */
	bool unwaited;			/* see umacct_probe_disarm_soon() */
	unsigned long first;		/* the function's first instruction */
	unsigned long past;		/* address behind the probe, if nothing is lost by that */
	u64 __percpu *entered;
	u64 __percpu *left;
	bool armed;
	bool stuck;			/* the kernel could not unhook it: umacct stays loaded */
};

int umacct_probe_system_init(void);
void umacct_probe_destroy(struct probe *p);
int umacct_probe_arm(struct probe *p);
void umacct_probe_disarm_soon(struct probe *p);
void umacct_probe_disarm(struct probe *p);
void umacct_probe_wait(void);
void umacct_probe_drain(struct probe *p);
u64 umacct_probe_calls(const struct probe *p);
int umacct_probe_resolve(const char *symbol, unsigned long *address);
void umacct_probe_forget_lookups(void);
bool umacct_probe_selftest(void);
bool umacct_probe_needs_kprobes(const struct probe *p);
void umacct_probe_system_exit(void);

/* How many calls the kernel could not deliver since the probe was armed. */
static inline u64 probe_missed(const struct probe *p)
{
	return p->armed && !p->direct ? p->kp.nmissed : 0;
}

static __always_inline struct probe *probe_enter(struct probe *p)
{
	this_cpu_inc(*p->entered);
	return p;
}

static __always_inline void probe_leave(struct probe *const *p)
{
	this_cpu_inc(*(*p)->left);
}

/*
 * The first line of a replacement. From here on umacct_probe_drain() waits for it, until it returns;
 * before and afterwards umacct_probe_wait() does. So nothing that may sleep comes before this.
 */
#define PROBE_INSIDE(p)	struct probe *const __inside __cleanup(probe_leave) = probe_enter(p)

/*
 * Declares what redirects.S has for a function, and the replacement for it. @params:
 * the function's parameters, in parentheses.
 */
#define DECLARE_REDIRECT(ret, name, params)		\
	extern unsigned long umacct_original_##name##_entry; \
	void umacct_enter_##name(void);			\
	ret umacct_original_##name params;		\
	ret umacct_replace_##name params

/* Declares what redirects.S has for a function that is called, not hooked. */
#define DECLARE_ORIGINAL(ret, name, params)		\
	extern unsigned long umacct_original_##name##_entry; \
	ret umacct_original_##name params

/* The members of struct probe that belong to it. */
#define REDIRECT(name)					\
	.replacement = umacct_replace_##name,		\
	.entry = &umacct_original_##name##_entry,	\
	.enter = umacct_enter_##name

/* The same for a function that is static; umacct_keep_##name() is declared beside it. */
#define REDIRECT_STATIC(name)				\
	.replacement = umacct_keep_##name,		\
	.entry = &umacct_original_##name##_entry,	\
	.enter = umacct_enter_##name

#endif /* UMACCT_PROBE_H */
