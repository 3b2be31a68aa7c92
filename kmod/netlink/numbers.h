/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_NUMBERS_H
#define UMACCT_NUMBERS_H

#include <net/netlink.h>

/* Messages carry many numbers: one call for each would be more code than data. */
struct u64_attr {
	int type;
	u64 value;
};

static inline int put_u64s(struct sk_buff *skb, const struct u64_attr *attrs, size_t nr, int pad)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (nla_put_u64_64bit(skb, attrs[i].type, attrs[i].value, pad))
			return -EMSGSIZE;
	return 0;
}

#endif /* UMACCT_NUMBERS_H */
