/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_THROTTLE_H
#define UMACCT_THROTTLE_H

#include <linux/types.h>

struct account;

void throttle_owe_locked(const struct account *account);
bool throttle_wanted(void);
bool throttle_possible(const char **why);

#endif /* UMACCT_THROTTLE_H */
