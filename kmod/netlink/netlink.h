/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_NETLINK_H
#define UMACCT_NETLINK_H

struct event;

int netlink_init(void);
void netlink_exit(void);
void netlink_send_event(const struct event *event);

#endif /* UMACCT_NETLINK_H */
