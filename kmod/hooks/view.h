/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_VIEW_H
#define UMACCT_VIEW_H

#include "hooks/hook.h"

extern struct hook hook_si_meminfo;
extern struct hook hook_si_mem_available;
extern struct hook hook_si_meminfo_node;
extern struct hook hook_meminfo_proc_show;

bool view_possible(const char **why);

#endif /* UMACCT_VIEW_H */
