/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_VIEW_H
#define UMACCT_VIEW_H

#include "hooks/hook.h"

extern struct hook umacct_hook_si_meminfo;
extern struct hook umacct_hook_si_mem_available;
extern struct hook umacct_hook_si_meminfo_node;
extern struct hook umacct_hook_meminfo_proc_show;

#endif /* UMACCT_VIEW_H */
