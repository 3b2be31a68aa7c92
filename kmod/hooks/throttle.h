/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_THROTTLE_H
#define UMACCT_THROTTLE_H

#include <linux/types.h>

void throttle_note(u64 penalty_ns, u64 account_id);
bool throttle_possible(const char **why);
void throttle_init(void);
void throttle_exit(void);

#endif /* UMACCT_THROTTLE_H */
