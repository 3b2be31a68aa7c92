/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_POOLS_H
#define UMACCT_POOLS_H

#include <linux/types.h>

struct module;

void umacct_pools_attach(struct module *driver, bool expected);
void umacct_pools_detach(void);
bool umacct_pools_read(u64 *bytes);
bool umacct_pools_reclaim(u64 *bytes);

#endif /* UMACCT_POOLS_H */
