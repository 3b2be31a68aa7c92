/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CHARGE_H
#define UMACCT_CHARGE_H

#include <linux/ptrace.h>
#include <linux/types.h>

#include "hooks/call.h"

struct cgroup;

/**
 * struct memory_figures - what the kernel's memory controller says of a cgroup
 * @current_bytes: memory.current
 * @max_bytes: memory.max, or UMACCT_UNLIMITED
 */
struct memory_figures {
	u64 current_bytes;
	u64 max_bytes;
};

bool charge_read_figures(const struct cgroup *cgrp, struct memory_figures *figures);
bool charge_begin(struct call *call, u8 *zeroed);
void charge_gfp(struct pt_regs *regs);
bool charge_wanted(void);
bool charge_by_driver(void);
bool charge_end(struct call *call);
bool charge_possible(const char **why);

#endif /* UMACCT_CHARGE_H */
