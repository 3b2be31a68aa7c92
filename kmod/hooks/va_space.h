/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_VA_SPACE_H
#define UMACCT_VA_SPACE_H

#include "hooks/hook.h"

extern struct hook hook_va_space_create;
extern struct hook hook_va_space_destroy;
extern struct hook hook_service_block;

void va_space_forget(void);

#endif /* UMACCT_VA_SPACE_H */
