/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CHARGE_H
#define UMACCT_CHARGE_H

#include <linux/ptrace.h>
#include <linux/types.h>

#include "hooks/call.h"
#include "hooks/hook.h"

extern struct hook hook_gfp;

bool charge_begin(struct call *call, u8 *zeroed);
bool charge_by_driver(void);
bool charge_end(struct call *call);
bool charge_possible(const char **why);

#endif /* UMACCT_CHARGE_H */
