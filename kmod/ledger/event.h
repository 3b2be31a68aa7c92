/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_EVENT_H
#define UMACCT_EVENT_H

#include <linux/sched.h>
#include <linux/types.h>

#include <umacct.h>

struct account;

/**
 * struct event - something that listeners are told
 * @type: what happened
 * @seq: number of the event, rising by one
 * @time: ns since the epoch
 * @account: of the task; referenced
 * @limit_account: whose limit it was, NULL for the machine's reserve; referenced
 * @pid: of the task's thread group, in the initial pid namespace
 * @comm: of the task
 * @size: bytes that were asked for or freed
 * @usage: bytes held by @limit_account, or MemAvailable
 * @limit: bytes
 */
struct event {
	enum umacct_event_type type;
	u64 seq;
	u64 time;
	struct account *account;
	struct account *limit_account;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	u64 size;
	u64 usage;
	u64 limit;
};

/**
 * struct event_counts - how the delivery of events goes
 * @posted: sequence number of the newest event
 * @lost: events dropped because the queue was full
 */
struct event_counts {
	u64 posted;
	u64 lost;
};

void event_init(void (*send)(const struct event *event));
void event_post_locked(enum umacct_event_type type, struct account *account,
		       struct account *limit_account, u64 size, u64 usage, u64 limit);
void event_kick(void);
void event_counts_locked(struct event_counts *counts);
void event_flush(void);
void event_exit(void);

#endif /* UMACCT_EVENT_H */
