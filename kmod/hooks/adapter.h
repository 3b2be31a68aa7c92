/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_ADAPTER_H
#define UMACCT_ADAPTER_H

#include "hooks/hook.h"

extern struct hook hook_init_adapter;

#endif /* UMACCT_ADAPTER_H */
