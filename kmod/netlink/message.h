/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_MESSAGE_H
#define UMACCT_MESSAGE_H

#include <linux/sizes.h>
#include <net/genetlink.h>

struct account;
struct client;
struct event;
struct reader;

/* Room for the largest: a status with every hook's reason, an event with two paths. */
#define MESSAGE_SIZE	SZ_8K

extern struct genl_family message_family;

int message_put_account(struct sk_buff *skb, const struct reader *reader,
			const struct account *a);
int message_put_client(struct sk_buff *skb, const struct reader *reader, const struct client *c,
		       const struct account *account);
int message_put_totals(struct sk_buff *skb, const struct reader *reader);
int message_put_driver(struct sk_buff *skb, const struct reader *reader);
int message_put_enforcement(struct sk_buff *skb, int state_attr, int reason_attr);
int message_put_event(struct sk_buff *skb, const struct event *event);

#endif /* UMACCT_MESSAGE_H */
