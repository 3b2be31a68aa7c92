/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_UNTOLD_H
#define UMACCT_UNTOLD_H

#include <linux/list.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <umacct.h>

struct account;

#define EVENT_TYPES	UMACCT_EVENT_RESERVE_REFUSED

/**
 * struct untold_event - what happened on an account since listeners were told last
 * @count: how often; the rest is of the newest time
 * @time: ns since the epoch
 * @size: bytes that were asked for or freed
 * @usage: bytes held by @limit_account, or what is available
 * @limit: bytes
 * @limit_account: whose limit it was, NULL for the machine's reserve; referenced
 * @pid: of the task's thread group, in the initial pid namespace
 * @comm: of the task
 */
struct untold_event {
	u64 count;
	u64 time;
	u64 size;
	u64 usage;
	u64 limit;
	struct account *limit_account;
	pid_t pid;
	char comm[TASK_COMM_LEN];
};

/**
 * struct untold - an account's events that were not told yet
 * @list: the accounts that have some; see event.c
 * @events: by type
 */
struct untold {
	struct list_head list;
	struct untold_event events[EVENT_TYPES];
};

#endif /* UMACCT_UNTOLD_H */
