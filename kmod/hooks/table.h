/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_HOOKS_TABLE_H
#define UMACCT_HOOKS_TABLE_H

#include "hooks/hook.h"

/* Every hook, in the order of arming. Disarming goes backwards. */
extern struct hook *const umacct_hooks[];
extern const unsigned int umacct_nr_hooks;

#define for_each_hook(hook)						\
	for (unsigned int __at = 0; __at < umacct_nr_hooks && ((hook) = umacct_hooks[__at]); __at++)

#define for_each_hook_reverse(hook)					\
	for (unsigned int __at = umacct_nr_hooks; __at && ((hook) = umacct_hooks[__at - 1]); __at--)

#endif /* UMACCT_HOOKS_TABLE_H */
