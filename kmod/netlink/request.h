/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions that answer the family's requests: get.c and set.c. */
#ifndef UMACCT_REQUEST_H
#define UMACCT_REQUEST_H

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
int umacct_nl_account_set_doit(struct sk_buff *request, struct genl_info *info);
int umacct_nl_config_set_doit(struct sk_buff *request, struct genl_info *info);
int umacct_nl_reclaim_doit(struct sk_buff *request, struct genl_info *info);

#endif /* UMACCT_REQUEST_H */
