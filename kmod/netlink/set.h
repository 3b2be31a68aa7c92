/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_SET_H
#define UMACCT_SET_H

struct genl_info;
struct sk_buff;

int set_account(struct sk_buff *request, struct genl_info *info);
int set_config(struct sk_buff *request, struct genl_info *info);
int set_reclaim(struct sk_buff *request, struct genl_info *info);

#endif /* UMACCT_SET_H */
