// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: its requests and their handlers. include/umacct.h
 * describes it.
 */
#include <net/genetlink.h>

#include <umacct.h>

#include "compat.h"
#include "ledger/account.h"
#include "netlink/family.h"
#include "netlink/message.h"
#include "netlink/policy.h"
#include "netlink/request.h"

/* The kernel refuses every attribute of operations without a policy: see resv_start_op. */
static const struct genl_ops ops[] = {
	{
		.cmd = UMACCT_CMD_STATUS_GET,
		.doit = umacct_nl_status_get_doit,
	},
	{
		.cmd = UMACCT_CMD_ACCOUNT_GET,
		.doit = umacct_nl_account_get_doit,
		.start = umacct_nl_account_get_start,
		.dumpit = umacct_nl_account_get_dumpit,
		.done = umacct_nl_get_done,
		.policy = account_get_policy,
		.maxattr = ARRAY_SIZE(account_get_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_ACCOUNT_SET,
		.doit = umacct_nl_account_set_doit,
		.policy = account_set_policy,
		.maxattr = ARRAY_SIZE(account_set_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_CLIENT_GET,
		.start = umacct_nl_client_get_start,
		.dumpit = umacct_nl_client_get_dumpit,
		.done = umacct_nl_get_done,
		.policy = client_get_policy,
		.maxattr = ARRAY_SIZE(client_get_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_CONFIG_SET,
		.doit = umacct_nl_config_set_doit,
		.policy = config_set_policy,
		.maxattr = ARRAY_SIZE(config_set_policy) - 1,
	},
	{
		.cmd = UMACCT_CMD_RECLAIM,
		.doit = umacct_nl_reclaim_doit,
	},
};

static const struct genl_multicast_group groups[] = {
	{ .name = UMACCT_MCGRP_EVENTS, .flags = UMACCT_MCAST_ADMIN },
};

/*
 * Tells the listeners. Returns 0, or an error if it can't be sent, or if a listener that wants this
 * to be known (NETLINK_BROADCAST_ERROR) has no room for it. May sleep.
 */
int umacct_family_send_event(const struct event *event)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	if (!genl_has_listeners(&umacct_message_family, &init_net, 0))
		return 0;
	skb = genlmsg_new(umacct_message_event_size(event), GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	hdr = genlmsg_put(skb, 0, 0, &umacct_message_family, 0, UMACCT_CMD_EVENT_NTF);
	if (!hdr || umacct_message_put_event(skb, event)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	err = genlmsg_multicast(&umacct_message_family, skb, 0, 0, GFP_KERNEL);
	/* The last one has just left. */
	return err == -ESRCH ? 0 : err;
}

/*
 * No MODULE_ALIAS_GENL_FAMILY(): the first query of any user, in any container, would load the
 * module, and load it again after rmmod. That is root's to decide: it hooks the driver.
 */

/* Offers the family. Returns -EEXIST if another copy of this module offers it. */
int umacct_family_init(void)
{
	int err = umacct_message_init();

	if (err)
		return err;
	umacct_message_family.ops = ops;
	umacct_message_family.n_ops = ARRAY_SIZE(ops);
	umacct_message_family.mcgrps = groups;
	umacct_message_family.n_mcgrps = ARRAY_SIZE(groups);
	err = genl_register_family(&umacct_message_family);
	if (err == -EEXIST)
		pr_err("another module offers the netlink family \"%s\": is a second copy of this one loaded?\n",
		       umacct_message_family.name);
	if (err)
		umacct_message_exit();
	return err;
}

/* Withdraws the family. On return no task is inside a request. */
void umacct_family_exit(void)
{
	genl_unregister_family(&umacct_message_family);
	umacct_message_exit();
}
