// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes: the permission to make them, their settings, and whether those are possible. All of
 * a request is done, or nothing; a refusal says why.
 */
#include <linux/mm.h>
#include <net/genetlink.h>

#include "hooks/driver.h"
#include "hooks/hook.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "ledger/settings.h"
#include "netlink/message.h"
#include "netlink/request.h"
#include "pools.h"

/* NL_SET_ERR_MSG() wants its text as a literal; ours are constants too. */
static void refuse(struct genl_info *info, const struct nlattr *attr, const char *why)
{
	if (!info->extack)
		return;
	NL_SET_BAD_ATTR(info->extack, attr);
	info->extack->_msg = why;
}

static int refuse_unprivileged(struct sk_buff *request, struct genl_info *info)
{
	if (netlink_capable(request, CAP_SYS_ADMIN))
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "changes need CAP_SYS_ADMIN in the initial user namespace");
	return -EPERM;
}

/* Whether a feature can be switched on; if not, why is the request's answer. */
static bool is_possible(struct genl_info *info, const struct nlattr *attr,
			bool (*feature)(const char **why))
{
	const char *why = NULL;
	bool possible;

	umacct_hook_lock();
	possible = feature(&why);
	umacct_hook_unlock();
	if (!possible)
		refuse(info, attr, why);
	return possible;
}

/* The hook that serves a setting, and whether it can be armed; other settings need none. */
static bool (*const possible[NR_SETTINGS])(const char **why) = {
	[SETTING_THROTTLE] = umacct_throttle_possible,
	[SETTING_VIEW] = umacct_view_possible,
	[SETTING_CHARGE] = umacct_charge_possible,
};

static int parse_change(struct genl_info *info, struct settings_change *change)
{
	enum setting_id id;

	memset(change, 0, sizeof(*change));
	for (id = 0; id < NR_SETTINGS; id++) {
		const struct nlattr *attr = info->attrs[umacct_setting_table[id].attr];
		u64 value;

		if (!attr)
			continue;
		value = nla_len(attr) == sizeof(u64) ? nla_get_u64(attr) : nla_get_u32(attr);
		if (possible[id] && umacct_setting_asks(id, value) &&
		    !is_possible(info, attr, possible[id]))
			return -EOPNOTSUPP;
		/* A stalled task must stay a task. */
		if (id == SETTING_THROTTLE && value > UMACCT_THROTTLE_MAX_NS) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr,
					    "a throttle is at most two seconds");
			return -ERANGE;
		}
		change->mask |= BIT(id);
		change->to.values[id] = value;
	}
	if (!change->mask) {
		NL_SET_ERR_MSG(info->extack, "nothing to change");
		return -EINVAL;
	}
	return 0;
}

/* Says whether anything enforces what was just set. */
static int answer(struct genl_info *info, u64 account_id)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	bool account = info->genlhdr->cmd == UMACCT_CMD_ACCOUNT_SET;
	void *hdr;

	/* It is done: only the answer is lost. */
	if (!skb)
		return 0;
	hdr = genlmsg_put_reply(skb, info, &umacct_message_family, 0, info->genlhdr->cmd);
	if (!hdr ||
	    (account && nla_put_u64_64bit(skb, UMACCT_A_ACCOUNT_ID, account_id,
					  UMACCT_A_ACCOUNT_PAD)) ||
	    umacct_message_put_enforcement(skb, account ? UMACCT_A_ACCOUNT_DRIVER_STATE :
						   UMACCT_A_STATUS_DRIVER_STATE,
					   account ? UMACCT_A_ACCOUNT_REASON :
					      UMACCT_A_STATUS_REASON)) {
		nlmsg_free(skb);
		return 0;
	}
	genlmsg_end(skb, hdr);
	genlmsg_reply(skb, info);
	return 0;
}

int umacct_nl_account_set_doit(struct sk_buff *request, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct settings_change change;
	enum setting_id which;
	struct account *account;
	const char *why = NULL;
	int err;

	err = refuse_unprivileged(request, info);
	if (err)
		return err;
	if (GENL_REQ_ATTR_CHECK(info, UMACCT_A_ACCOUNT_ID)) {
		NL_SET_ERR_MSG(info->extack, "an account id is needed");
		return -EINVAL;
	}
	err = parse_change(info, &change);
	if (err)
		return err;
	account = umacct_account_open(nla_get_u64(attrs[UMACCT_A_ACCOUNT_ID]));
	if (IS_ERR(account)) {
		if (PTR_ERR(account) == -ENOENT)
			NL_SET_ERR_MSG_ATTR(info->extack, attrs[UMACCT_A_ACCOUNT_ID],
					    "no such cgroup");
		else if (PTR_ERR(account) == -E2BIG)
			NL_SET_ERR_MSG_ATTR(info->extack, attrs[UMACCT_A_ACCOUNT_ID],
					    "cgroups below level 64 have no account: set the limit on an ancestor");
		return PTR_ERR(account);
	}
	err = umacct_settings_change(account, &change, &which, &why);
	if (err)
		refuse(info, attrs[umacct_setting_table[which].attr] ?:
			     attrs[UMACCT_A_ACCOUNT_HARD], why);
	account_put(account);
	if (err)
		return err;
	umacct_driver_rearm();
	return answer(info, nla_get_u64(attrs[UMACCT_A_ACCOUNT_ID]));
}

int umacct_nl_config_set_doit(struct sk_buff *request, struct genl_info *info)
{
	struct nlattr *reserve = info->attrs[UMACCT_A_STATUS_RESERVE];
	struct nlattr *charge = info->attrs[UMACCT_A_STATUS_CHARGE_DEFAULT];
	const char *why = NULL;
	int err;

	err = refuse_unprivileged(request, info);
	if (err)
		return err;
	if (!reserve && !charge) {
		NL_SET_ERR_MSG(info->extack, "nothing to change");
		return -EINVAL;
	}
	if (reserve && nla_get_u64(reserve) > (u64)totalram_pages() << PAGE_SHIFT) {
		NL_SET_ERR_MSG_ATTR(info->extack, reserve,
				    "the reserve is more than the machine's memory");
		return -ERANGE;
	}
	if (charge && nla_get_u32(charge) == UMACCT_CHARGE_ON &&
	    !is_possible(info, charge, umacct_charge_possible))
		return -EOPNOTSUPP;
	if (reserve) {
		err = umacct_settings_change_reserve(nla_get_u64(reserve), &why);
		if (err) {
			refuse(info, reserve, why);
			return err;
		}
	}
	if (charge)
		umacct_settings_set_charge_default(nla_get_u32(charge) == UMACCT_CHARGE_ON);
	umacct_driver_rearm();
	return answer(info, 0);
}

int umacct_nl_reclaim_doit(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *skb;
	u64 bytes;
	void *hdr;
	int err;

	err = refuse_unprivileged(request, info);
	if (err)
		return err;
	if (!umacct_pools_reclaim(&bytes)) {
		NL_SET_ERR_MSG(info->extack, "the driver's page pools were not found");
		return -EOPNOTSUPP;
	}
	skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	hdr = genlmsg_put_reply(skb, info, &umacct_message_family, 0, info->genlhdr->cmd);
	if (!hdr ||
	    nla_put_u64_64bit(skb, UMACCT_A_STATUS_RECLAIMED, bytes, UMACCT_A_STATUS_PAD) ||
	    umacct_message_put_pools(skb)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}
