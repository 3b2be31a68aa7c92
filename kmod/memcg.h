/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_MEMCG_H
#define UMACCT_MEMCG_H

#include <linux/types.h>

struct cgroup;

/**
 * struct memcg_figures - what the kernel's memory controller says of a cgroup
 * @current_bytes: memory.current
 * @max_bytes: memory.max, or UMACCT_UNLIMITED
 */
struct memcg_figures {
	u64 current_bytes;
	u64 max_bytes;
};

bool memcg_read(const struct cgroup *cgrp, struct memcg_figures *figures);
bool memcg_charges_current(void);
bool memcg_may_block(u64 bytes);
bool memcg_on_v2(void);
bool memcg_possible(const char **why);

#endif /* UMACCT_MEMCG_H */
