/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_GET_H
#define UMACCT_GET_H

struct genl_info;
struct netlink_callback;
struct sk_buff;

int umacct_nl_status_get_doit(struct sk_buff *request, struct genl_info *info);
int umacct_nl_account_get_doit(struct sk_buff *request, struct genl_info *info);
int umacct_nl_account_get_start(struct netlink_callback *cb);
int umacct_nl_account_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int umacct_nl_client_get_start(struct netlink_callback *cb);
int umacct_nl_client_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int umacct_nl_get_done(struct netlink_callback *cb);

#endif /* UMACCT_GET_H */
