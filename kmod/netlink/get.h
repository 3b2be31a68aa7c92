/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_GET_H
#define UMACCT_GET_H

struct genl_info;
struct netlink_callback;
struct sk_buff;

int get_status(struct sk_buff *request, struct genl_info *info);
int get_account(struct sk_buff *request, struct genl_info *info);
int get_account_dump_start(struct netlink_callback *cb);
int get_account_dump(struct sk_buff *skb, struct netlink_callback *cb);
int get_client_dump_start(struct netlink_callback *cb);
int get_client_dump(struct sk_buff *skb, struct netlink_callback *cb);
int get_dump_done(struct netlink_callback *cb);

#endif /* UMACCT_GET_H */
