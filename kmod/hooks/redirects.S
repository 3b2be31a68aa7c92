/* SPDX-License-Identifier: GPL-2.0-only */
/* The ways into and around each function that is hooked, or called. */
#include "probe/redirect.S"

#define HOOK(name, ...)			REDIRECT name;
#define HOOK_STATIC(name, ...)		REDIRECT_STATIC name;
#define CALLED(name, ...)		ORIGINAL name;
#include "hooks/hooks.h"

	/* The kernel's own, called by memcg.c. */
	ORIGINAL obj_cgroup_charge
	ORIGINAL obj_cgroup_uncharge

#ifdef CONFIG_X86_64
	.section .note.GNU-stack, "", @progbits
#endif
