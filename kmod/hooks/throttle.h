/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_THROTTLE_H
#define UMACCT_THROTTLE_H

#include "hooks/hook.h"

extern struct hook hook_ioctl;
extern struct hook hook_compat_ioctl;

void throttle_note(u64 penalty_ns, u64 account_id);
bool throttle_possible(const char **why);

#endif /* UMACCT_THROTTLE_H */
