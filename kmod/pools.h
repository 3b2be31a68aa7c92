/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_POOLS_H
#define UMACCT_POOLS_H

#include <linux/types.h>

struct module;

void pools_attach(struct module *driver, bool expected);
void pools_detach(void);
bool pools_read(u64 *bytes);
bool pools_reclaim(u64 *bytes);

#endif /* UMACCT_POOLS_H */
