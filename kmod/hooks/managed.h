/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_MANAGED_H
#define UMACCT_MANAGED_H

#include "hooks/hook.h"

extern struct hook umacct_hook_cpu_fault;
extern struct hook umacct_hook_chunk_free;
extern struct hook umacct_hook_chunk_alloc_3;
extern struct hook umacct_hook_chunk_alloc_4;
extern struct hook umacct_hook_uvm_mem_free;
extern struct hook umacct_hook_uvm_mem_alloc;

#endif /* UMACCT_MANAGED_H */
