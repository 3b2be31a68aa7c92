/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_PENDING_H
#define UMACCT_PENDING_H

#include <linux/list.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <umacct.h>

struct account;

#define EVENT_TYPES	UMACCT_EVENT_FAILED

/**
 * struct pending_event - events of one type on an account that have not been sent
 * @count: how many; the rest is of the newest
 * @time: ns since the epoch
 * @size: bytes that were asked for or freed
 * @usage: bytes held by @limit_account, or what is available
 * @limit: bytes; 0 where no limit was in the way
 * @limit_account: whose limit it was, NULL for the machine's reserve and where there was none;
 *	referenced
 * @pid: of the task's thread group, in the initial pid namespace
 * @comm: of the task
 */
struct pending_event {
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
 * struct pending - events of an account that have not been sent
 * @list: the accounts that have some; see event.c
 * @events: by type
 */
struct pending {
	struct list_head list;
	struct pending_event events[EVENT_TYPES];
};

#endif /* UMACCT_PENDING_H */
