/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_MESSAGE_H
#define UMACCT_MESSAGE_H

#include <net/genetlink.h>

struct account;
struct client;
struct event;
struct reader;

/* Room for an account with its path, and for a status but for its hooks. */
#define MESSAGE_SIZE	NLMSG_DEFAULT_SIZE

extern struct genl_family umacct_message_family;

int umacct_message_init(void);
void umacct_message_exit(void);
int umacct_message_put_account(struct sk_buff *skb, const struct reader *reader,
			       const struct account *a);
int umacct_message_put_client(struct sk_buff *skb, const struct reader *reader,
			      const struct client *c, const struct account *account);
size_t umacct_message_status_size(void);
int umacct_message_put_pools(struct sk_buff *skb);
int umacct_message_put_totals(struct sk_buff *skb, const struct reader *reader);
int umacct_message_put_driver(struct sk_buff *skb, const struct reader *reader);
int umacct_message_put_enforcement(struct sk_buff *skb, int state_attr, int reason_attr);
size_t umacct_message_event_size(const struct event *event);
int umacct_message_put_event(struct sk_buff *skb, const struct event *event);

#endif /* UMACCT_MESSAGE_H */
