/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_DRIVER_H
#define UMACCT_DRIVER_H

void umacct_drivers_release(void);
void umacct_drivers_prepare(void);
int umacct_drivers_init(void);
void umacct_drivers_exit(void);
void umacct_driver_rearm(void);
const char *umacct_driver_unenforced(void);

#endif /* UMACCT_DRIVER_H */
