/* SPDX-License-Identifier: GPL-2.0-only */
/* Made by "make generate" from docs/netlink/umacct.yaml: do not edit. */
#ifndef UMACCT_POLICY_H
#define UMACCT_POLICY_H

#include <net/netlink.h>

#include <umacct.h>

static const struct nla_policy account_get_policy[] = {
	[UMACCT_A_ACCOUNT_ID] = { .type = NLA_U64 },
};

static const struct nla_policy account_set_policy[] = {
	[UMACCT_A_ACCOUNT_ID] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_SOFT] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_HARD] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_THROTTLE] = { .type = NLA_U64 },
	[UMACCT_A_ACCOUNT_VIEW] = NLA_POLICY_MAX(NLA_U32, 1),
	[UMACCT_A_ACCOUNT_CHARGE] = NLA_POLICY_MAX(NLA_U32, UMACCT_CHARGE_ON),
	[UMACCT_A_ACCOUNT_KEEP] = { .type = NLA_U64 },
};

static const struct nla_policy client_get_policy[] = {
	[UMACCT_A_CLIENT_ACCOUNT_ID] = { .type = NLA_U64 },
	[UMACCT_A_CLIENT_EXITING] = { .type = NLA_FLAG },
};

static const struct nla_policy config_set_policy[] = {
	[UMACCT_A_STATUS_RESERVE] = { .type = NLA_U64 },
	[UMACCT_A_STATUS_CHARGE_DEFAULT] =
		NLA_POLICY_RANGE(NLA_U32, UMACCT_CHARGE_OFF, UMACCT_CHARGE_ON),
};

#endif /* UMACCT_POLICY_H */
