/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_FAMILY_H
#define UMACCT_FAMILY_H

struct event;

int umacct_family_init(void);
void umacct_family_exit(void);
int umacct_family_send_event(const struct event *event);

#endif /* UMACCT_FAMILY_H */
