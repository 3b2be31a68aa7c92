/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ALLOC_H
#define UMACCT_ALLOC_H

#include "hooks/hook.h"

extern struct hook umacct_hook_free_system_pages;
extern struct hook umacct_hook_free_contig_pages;
extern struct hook umacct_hook_alloc_pages_8;
extern struct hook umacct_hook_alloc_pages_9;
extern struct hook umacct_hook_alloc_pages_10;

#endif /* UMACCT_ALLOC_H */
