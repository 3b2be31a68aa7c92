/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether features can be switched on, for netlink/. Each sets @why to a sentence if not.
 */
#ifndef UMACCT_POSSIBLE_H
#define UMACCT_POSSIBLE_H

#include <linux/types.h>

bool umacct_charge_possible(const char **why);
bool umacct_throttle_possible(const char **why);
bool umacct_view_possible(const char **why);

#endif /* UMACCT_POSSIBLE_H */
