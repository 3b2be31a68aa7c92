/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The assembler macro REDIRECT makes, for a function that can be redirected:
 *
 *  original_<name>: the original, callable from C. Passes on every register, the
 *  stack and the return address as they are and continues at
 *  original_<name>_entry, which probe.c keeps.
 *
 *  enter_<name>: what the function's ftrace site calls when it is hooked by a
 *  direct call. Forgets the site and goes on in replace_<name>, as if the
 *  function's caller had called that.
 *
 * x86: an indirect jump to the original would need an ENDBR at its target when
 * the kernel enforces IBT, and the one of a function whose address is never taken
 * may have been sealed. A return is not checked.
 *
 * arm64: at an ftrace site, x9 holds the return address of the function and x30
 * that of the site. BR through x16 is what a BTI landing pad for calls accepts.
 */
#ifndef UMACCT_PROBE_REDIRECT_H
#define UMACCT_PROBE_REDIRECT_H

#include <linux/linkage.h>

.macro ENTRY_POINTER name
	.pushsection .data, "aw"
	.balign	8
	.globl	original_\name\()_entry
original_\name\()_entry:
	.quad	0
	.popsection
.endm

#ifdef CONFIG_X86_64
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

.macro REDIRECT name
ENTRY_POINTER \name
SYM_FUNC_START(original_\name)
	pushq	original_\name\()_entry(%rip)
	UNWIND_HINT_FUNC
	RET
SYM_FUNC_END(original_\name)

SYM_FUNC_START(enter_\name)
	addq	$8, %rsp
	UNWIND_HINT_FUNC
	jmp	replace_\name
SYM_FUNC_END(enter_\name)
.endm
#else
#include <asm/assembler.h>

.macro REDIRECT name
ENTRY_POINTER \name
SYM_FUNC_START(original_\name)
	adrp	x16, original_\name\()_entry
	ldr	x16, [x16, #:lo12:original_\name\()_entry]
	mov	x9, x30
	br	x16
SYM_FUNC_END(original_\name)

SYM_FUNC_START(enter_\name)
	mov	x30, x9
	b	replace_\name
SYM_FUNC_END(enter_\name)
.endm
#endif

#endif /* UMACCT_PROBE_REDIRECT_H */
