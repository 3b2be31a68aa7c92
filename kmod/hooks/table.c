// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hooks; see hooks.h.
 */
#include <linux/kernel.h>

#include "hooks/hook.h"

#define SYMBOL_NVIDIA	"nvidia:"
#define SYMBOL_UVM	"nvidia_uvm:"
#define SYMBOL_KERNEL	""

#define UVM_LIMITS	.layouts = LAYOUT_UVM, .limits = true
#define CALLS(symbol_, which)	{ .symbol = symbol_, .entry = &umacct_original_##which##_entry }

#define DEFINE_HOOK(redirect, which, module_, function, description, ...)	\
	struct hook umacct_hook_##which = {					\
		.name = description,						\
		.module = HOOK_##module_,					\
		.probe = {							\
			.symbol = SYMBOL_##module_ #function,			\
			redirect(which),					\
		},								\
		__VA_ARGS__							\
	};

#define HOOK(name, module, function, description, ret, params, ...)		\
	DEFINE_HOOK(REDIRECT, name, module, function, description, __VA_ARGS__)
#define HOOK_STATIC(name, module, function, description, ret, params, ...)	\
	DEFINE_HOOK(REDIRECT_STATIC, name, module, function, description, __VA_ARGS__)
#include "hooks/hooks.h"

struct hook *const umacct_hooks[] = {
#define HOOK(name, ...)	&umacct_hook_##name,
#include "hooks/hooks.h"
};

const unsigned int umacct_nr_hooks = ARRAY_SIZE(umacct_hooks);
