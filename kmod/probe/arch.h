/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entry of a function on x86_64 and arm64, for probe.c alone: the mark of
 * our own call, the place behind a probe or an ftrace site, and how a call is sent
 * elsewhere.
 */
#ifndef UMACCT_PROBE_ARCH_H
#define UMACCT_PROBE_ARCH_H

#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/uaccess.h>

static inline bool arch_on_ftrace(const struct kprobe *kp)
{
#ifdef CONFIG_KPROBES_ON_FTRACE
	return kp->flags & KPROBE_FLAG_FTRACE;
#else
	return false;
#endif
}

#ifdef CONFIG_X86_64

/* Register with the complement of the target, which the thunk left there; see redirect.S. */
static __always_inline unsigned long *arch_mark(struct pt_regs *regs)
{
	return &regs->r11;
}

/* Goes on at @to, as if that had been called. */
static __always_inline void arch_redirect(struct pt_regs *regs, unsigned long to)
{
	instruction_pointer_set(regs, to);
}

/* The end of the ftrace site at a function's entry, or 0. @kp was registered there. */
static inline unsigned long arch_behind_site(const struct kprobe *kp)
{
	return arch_on_ftrace(kp) ? (unsigned long)kp->addr + MCOUNT_INSN_SIZE : 0;
}

/*
 * Address to enter a function at, behind the code of a kprobe or ftrace.
 * @kp is registered there, and shows what was.
 */
static inline unsigned long arch_behind_probe(const struct kprobe *kp)
{
	return arch_behind_site(kp) ?: (unsigned long)kp->addr;
}

#else /* CONFIG_ARM64 */

#include <asm/insn.h>

/* aarch64_insn_gen_nop() is not for modules in v6.1. */
#define ARCH_INSN_NOP		0xd503201f
/* The instruction that ftrace puts in place of the first of the two NOPs at an entry. */
#define ARCH_INSN_MOV_X9_X30	0xaa1e03e9

static __always_inline unsigned long *arch_mark(struct pt_regs *regs)
{
	return (unsigned long *)&regs->regs[17];
}

static __always_inline void arch_redirect(struct pt_regs *regs, unsigned long to)
{
	instruction_pointer_set(regs, to);
	/* It isn't an indirect branch that gets there, for which a landing pad is needed. */
	regs->pstate &= ~PSR_BTYPE_MASK;
}

static inline u32 arch_insn_at(unsigned long address)
{
	__le32 insn = 0;

	copy_from_kernel_nofault(&insn, (void *)address, sizeof(insn));
	return le32_to_cpu(insn);
}

static inline unsigned long arch_behind_site(const struct kprobe *kp)
{
	unsigned long first = (unsigned long)kp->addr;
	unsigned int i;

	/* A BTI landing pad may come first. */
	for (i = 0; i < 2; i++, first += AARCH64_INSN_SIZE)
		if (arch_insn_at(first) == ARCH_INSN_MOV_X9_X30)
			return first + 2 * AARCH64_INSN_SIZE;
	return 0;
}

static inline unsigned long arch_behind_probe(const struct kprobe *kp)
{
	unsigned long first = (unsigned long)kp->addr;
	u32 insn = le32_to_cpu((__force __le32)kp->opcode);

	return insn == ARCH_INSN_NOP || insn == ARCH_INSN_MOV_X9_X30 ?
		first + AARCH64_INSN_SIZE : first;
}

#endif

#endif /* UMACCT_PROBE_ARCH_H */
