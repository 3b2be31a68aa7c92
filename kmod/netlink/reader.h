/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_READER_H
#define UMACCT_READER_H

#include <linux/types.h>

struct account;
struct pid_namespace;
struct sk_buff;

/**
 * struct reader - on whose behalf a request is answered
 * @all: sees every account
 * @exiting: asked for processes that are exiting only
 * @own: otherwise, sees the subtree of this cgroup; 0: none
 * @subtree: asked for this subtree only, or 0
 * @cursor: dumps: number of the last row that was looked at
 * @pids: rows: pid namespace in which pids are reported; referenced
 * @prefix: rows: path of the root of the cgroup namespace in which paths are reported
 */
struct reader {
	bool all;
	bool exiting;
	u64 own;
	u64 subtree;
	u64 cursor;
	struct pid_namespace *pids;
	char prefix[];
};

void umacct_reader_init(struct reader *reader, const struct sk_buff *request);
struct reader *umacct_reader_alloc(const struct sk_buff *request);
void umacct_reader_free(struct reader *reader);
bool umacct_reader_may_see(const struct reader *reader, const struct account *account);
bool umacct_reader_asks_for(const struct reader *reader, const struct account *account);
const char *umacct_reader_path(const struct reader *reader, const struct account *account);

#endif /* UMACCT_READER_H */
