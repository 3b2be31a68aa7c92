/* SPDX-License-Identifier: GPL-2.0-only */
/* Made by "make generate" from docs/netlink/umacct.yaml: do not edit. */
#ifndef UMACCT_FIGURES_H
#define UMACCT_FIGURES_H

#include <umacct.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/limit.h"
#include "netlink/numbers.h"

static __always_inline int
put_status_figures(struct sk_buff *skb, const struct ledger_totals *t, bool all)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_STATUS_USAGE, t->usage },
		{ UMACCT_A_STATUS_CHARGED, t->charged },
		{ UMACCT_A_STATUS_MANAGED, t->managed },
		{ UMACCT_A_STATUS_METADATA, t->metadata },
		{ UMACCT_A_STATUS_DRIVER_USAGE, t->records.driver_usage },
		{ UMACCT_A_STATUS_DRIVER_PEAK, t->records.driver_peak },
		{ UMACCT_A_STATUS_UNTRACKED, t->records.untracked },
		{ UMACCT_A_STATUS_UNTRACKED_COUNT, t->records.untracked_count },
		{ UMACCT_A_STATUS_STALE_COUNT, t->records.stale_count },
		{ UMACCT_A_STATUS_RESERVE, t->settings.reserve },
		{ UMACCT_A_STATUS_RESERVE_COUNT, t->reserve_count },
		{ UMACCT_A_STATUS_EVENTS_SENT, t->events.sent },
		{ UMACCT_A_STATUS_EVENTS_LOST, t->events.lost },
		{ UMACCT_A_STATUS_UNATTRIBUTED_COUNT, t->unattributed_count },
		{ UMACCT_A_STATUS_AVAILABLE, all ? available_now() : 0 },
		{ UMACCT_A_STATUS_KEPT, all ? umacct_reserve_kept_from(NULL) : 0 },
	};

	if (put_u64s(skb, numbers, all ? ARRAY_SIZE(numbers) : 4, UMACCT_A_STATUS_PAD))
		return -EMSGSIZE;
	if (!all)
		return 0;
	if (nla_put_u32(skb, UMACCT_A_STATUS_ACCOUNTS, t->accounts) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_CLIENTS, t->clients) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_RECORDS, t->records.nr) ||
	    nla_put_u32(skb, UMACCT_A_STATUS_CHARGE_DEFAULT,
			t->settings.charge_default ? UMACCT_CHARGE_ON : UMACCT_CHARGE_OFF))
		return -EMSGSIZE;
	return 0;
}

static __always_inline int
put_account_figures(struct sk_buff *skb, const struct account *a, const struct held *held)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_ACCOUNT_ID, a->id },
		{ UMACCT_A_ACCOUNT_USAGE, held->usage },
		{ UMACCT_A_ACCOUNT_LOCAL, held->local },
		{ UMACCT_A_ACCOUNT_PEAK, a->peak },
		{ UMACCT_A_ACCOUNT_CHARGED, held->charged },
		{ UMACCT_A_ACCOUNT_MANAGED, held->managed },
		{ UMACCT_A_ACCOUNT_ALLOCS, a->allocs },
		{ UMACCT_A_ACCOUNT_FREES, a->frees },
		{ UMACCT_A_ACCOUNT_FAILURES, a->failures },
		{ UMACCT_A_ACCOUNT_REFUSALS, a->refusals },
		{ UMACCT_A_ACCOUNT_SOFT, a->settings.soft },
		{ UMACCT_A_ACCOUNT_HARD, a->settings.hard },
		{ UMACCT_A_ACCOUNT_THROTTLE, a->settings.throttle_ns },
		{ UMACCT_A_ACCOUNT_EFFECTIVE, a->effective },
		{ UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT, a->soft_count },
		{ UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT, a->hard_count },
		{ UMACCT_A_ACCOUNT_RESERVE_COUNT, a->reserve_count },
		{ UMACCT_A_ACCOUNT_THROTTLED, a->throttled_ns },
		{ UMACCT_A_ACCOUNT_ALLOC_TIME, a->alloc_time_ns },
		{ UMACCT_A_ACCOUNT_ALLOC_TIME_MAX, a->alloc_time_max_ns },
		{ UMACCT_A_ACCOUNT_METADATA, a->metadata },
		{ UMACCT_A_ACCOUNT_KEEP, a->settings.keep },
		{ UMACCT_A_ACCOUNT_FAILED, a->failed },
		{ UMACCT_A_ACCOUNT_PINNED, a->pinned },
	};

	if (put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_ACCOUNT_PAD))
		return -EMSGSIZE;
	if (nla_put_u32(skb, UMACCT_A_ACCOUNT_LEVEL, a->level) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_CLIENTS, a->clients) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_VIEW, a->settings.view) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_CHARGE, a->settings.charge) ||
	    nla_put_u32(skb, UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE,
			a->charge_effective ? UMACCT_CHARGE_ON : UMACCT_CHARGE_OFF))
		return -EMSGSIZE;
	return 0;
}

static __always_inline int
put_client_figures(struct sk_buff *skb, const struct client *c, const struct held *held, const struct account *account)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_CLIENT_START_TIME, c->start_time },
		{ UMACCT_A_CLIENT_ACCOUNT_ID, account->id },
		{ UMACCT_A_CLIENT_USAGE, held->usage },
		{ UMACCT_A_CLIENT_PEAK, c->peak },
		{ UMACCT_A_CLIENT_CHARGED, held->charged },
		{ UMACCT_A_CLIENT_MANAGED, held->managed },
		{ UMACCT_A_CLIENT_ALLOCS, c->allocs },
		{ UMACCT_A_CLIENT_FREES, c->frees },
		{ UMACCT_A_CLIENT_METADATA, c->metadata },
		{ UMACCT_A_CLIENT_PINNED, c->pinned },
	};

	if (put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_CLIENT_PAD))
		return -EMSGSIZE;
	if (nla_put_u32(skb, UMACCT_A_CLIENT_RECORDS, client_records(c)))
		return -EMSGSIZE;
	return 0;
}

static __always_inline int
put_event_figures(struct sk_buff *skb, const struct event *e)
{
	const struct u64_attr numbers[] = {
		{ UMACCT_A_EVENT_SEQ, e->seq },
		{ UMACCT_A_EVENT_TIME, e->what.time },
		{ UMACCT_A_EVENT_ACCOUNT_ID, e->account->id },
		{ UMACCT_A_EVENT_SIZE, e->what.size },
		{ UMACCT_A_EVENT_USAGE, e->what.usage },
		{ UMACCT_A_EVENT_LIMIT, e->what.limit },
		{ UMACCT_A_EVENT_COUNT, e->what.count },
	};

	if (put_u64s(skb, numbers, ARRAY_SIZE(numbers), UMACCT_A_EVENT_PAD))
		return -EMSGSIZE;
	if (nla_put_u32(skb, UMACCT_A_EVENT_PID, e->what.pid))
		return -EMSGSIZE;
	return 0;
}

#endif /* UMACCT_FIGURES_H */
