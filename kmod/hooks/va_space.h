/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_VA_SPACE_H
#define UMACCT_VA_SPACE_H

#include "hooks/hook.h"

extern struct hook umacct_hook_va_space_create;
extern struct hook umacct_hook_va_space_destroy;
extern struct hook umacct_hook_create_group;
extern struct hook umacct_hook_destroy_group;
extern struct hook umacct_hook_assign_range;
extern struct hook umacct_hook_service_block;

void umacct_va_space_forget(void);

#endif /* UMACCT_VA_SPACE_H */
