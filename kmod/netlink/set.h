/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_SET_H
#define UMACCT_SET_H

struct genl_info;
struct sk_buff;

int umacct_nl_account_set_doit(struct sk_buff *request, struct genl_info *info);
int umacct_nl_config_set_doit(struct sk_buff *request, struct genl_info *info);
int umacct_nl_reclaim_doit(struct sk_buff *request, struct genl_info *info);

#endif /* UMACCT_SET_H */
