/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Assembler macros for functions that aren't ours:
 *
 * ORIGINAL makes umacct_original_<name>, by which C calls the function itself. It passes on
 * every argument, the stack and the return address as they are and continues at
 * umacct_original_<name>_entry. It leaves the complement of that in a register that no
 * argument is in: a probe at the function's first instruction knows its own by that.
 *
 * REDIRECT makes umacct_enter_<name> besides: what the function's ftrace site calls when it is
 * hooked by a direct call. It forgets the site and goes on in umacct_replace_<name>, as if
 * the function's caller had called that.
 *
 * REDIRECT_STATIC is for a function that is static: its callers may rely on registers
 * that it happens not to change. umacct_keep_<name> calls umacct_replace_<name> and changes nothing
 * but the result's register.
 *
 * x86: an indirect jump to the original would need an ENDBR at its target when
 * the kernel enforces IBT, and the one of a function whose address is never taken
 * may have been sealed. A return is not checked.
 *
 * arm64: at an ftrace site, x9 holds the return address of the function and x30
 * that of the site. An indirect branch would need a BTI landing pad; a return doesn't.
 */
#ifndef UMACCT_PROBE_REDIRECT_S
#define UMACCT_PROBE_REDIRECT_S

#include <linux/linkage.h>

.macro ENTRY_POINTER name
	.pushsection .data, "aw"
	.balign	8
	.globl	umacct_original_\name\()_entry
umacct_original_\name\()_entry:
	.quad	0
	.popsection
.endm

#ifdef CONFIG_X86_64
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

/*
 * No indirect branch leads there today, but data points there, and objtool wants
 * an ENDBR where data points. SYM_FUNC_START() has one in v6.12, and none in v7.3.
 */
.macro TARGET name
SYM_START(\name, SYM_L_GLOBAL, SYM_A_ALIGN)
	ENDBR
.endm

.macro ORIGINAL name
ENTRY_POINTER \name
SYM_FUNC_START(umacct_original_\name)
	movq	umacct_original_\name\()_entry(%rip), %r11
	pushq	%r11
	notq	%r11
	UNWIND_HINT_FUNC
	RET
SYM_FUNC_END(umacct_original_\name)
.endm

.macro ENTER name, to
TARGET umacct_enter_\name
	addq	$8, %rsp
	UNWIND_HINT_FUNC
	jmp	umacct_\to\()_\name
SYM_FUNC_END(umacct_enter_\name)
.endm

.macro KEEP name
TARGET umacct_keep_\name
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	call	umacct_replace_\name
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	RET
SYM_FUNC_END(umacct_keep_\name)
.endm
#else
#include <asm/assembler.h>

.macro ORIGINAL name
ENTRY_POINTER \name
SYM_FUNC_START(umacct_original_\name)
	adrp	x16, umacct_original_\name\()_entry
	ldr	x16, [x16, #:lo12:umacct_original_\name\()_entry]
	mvn	x17, x16
	mov	x9, x30
	ret	x16
SYM_FUNC_END(umacct_original_\name)
.endm

.macro ENTER name, to
SYM_FUNC_START(umacct_enter_\name)
	mov	x30, x9
	b	umacct_\to\()_\name
SYM_FUNC_END(umacct_enter_\name)
.endm

.macro KEEP name
SYM_FUNC_START(umacct_keep_\name)
	stp	x29, x30, [sp, #-160]!
	mov	x29, sp
	stp	x1, x2, [sp, #16]
	stp	x3, x4, [sp, #32]
	stp	x5, x6, [sp, #48]
	stp	x7, x8, [sp, #64]
	stp	x9, x10, [sp, #80]
	stp	x11, x12, [sp, #96]
	stp	x13, x14, [sp, #112]
	stp	x15, x16, [sp, #128]
	stp	x17, x18, [sp, #144]
	bl	umacct_replace_\name
	ldp	x1, x2, [sp, #16]
	ldp	x3, x4, [sp, #32]
	ldp	x5, x6, [sp, #48]
	ldp	x7, x8, [sp, #64]
	ldp	x9, x10, [sp, #80]
	ldp	x11, x12, [sp, #96]
	ldp	x13, x14, [sp, #112]
	ldp	x15, x16, [sp, #128]
	ldp	x17, x18, [sp, #144]
	ldp	x29, x30, [sp], #160
	ret
SYM_FUNC_END(umacct_keep_\name)
.endm
#endif

.macro REDIRECT name
ORIGINAL \name
ENTER \name, replace
.endm

.macro REDIRECT_STATIC name
ORIGINAL \name
KEEP \name
ENTER \name, keep
.endm

#endif /* UMACCT_PROBE_REDIRECT_S */
