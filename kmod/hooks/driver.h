/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_DRIVER_H
#define UMACCT_DRIVER_H

#include <linux/types.h>

int drivers_prepare(void);
void drivers_release(void);
int drivers_init(void);
void drivers_exit(void);
void driver_rearm(void);
const char *driver_unenforced(void);

#endif /* UMACCT_DRIVER_H */
