/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_FAMILY_H
#define UMACCT_FAMILY_H

struct event;

int family_init(void);
void family_exit(void);
int family_send_event(const struct event *event);

#endif /* UMACCT_FAMILY_H */
