/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_TABLE_H
#define UMACCT_TABLE_H

#include "hooks/hook.h"

/* Every hook, in the order of arming. Disarming goes backwards. */
extern struct hook *const hooks[];
extern const unsigned int nr_hooks;

#define for_each_hook(hook)						\
	for (unsigned int __at = 0; __at < nr_hooks && ((hook) = hooks[__at]); __at++)

#define for_each_hook_reverse(hook)					\
	for (unsigned int __at = nr_hooks; __at && ((hook) = hooks[__at - 1]); __at--)

#endif /* UMACCT_TABLE_H */
