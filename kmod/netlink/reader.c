// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which accounts a reader may see, and under which names. It is decided once, at the start of a
 * request, and carried through a dump: later parts of a dump may run in another
 * task.
 */
#include <linux/cgroup.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>

#include "ledger/account.h"
#include "netlink/reader.h"

/*
 * Who may read every file may read every account, too: so that what only reads, as an
 * exporter of metrics, needs no capability that could change anything.
 */
static bool may_see_all(const struct sk_buff *request)
{
	return netlink_capable(request, CAP_SYS_ADMIN) ||
	       netlink_capable(request, CAP_DAC_READ_SEARCH);
}

/**
 * umacct_reader_init() - find out on whose behalf a request is answered
 * @reader: filled in, except for the namespaces of rows
 * @request: from the current task
 *
 * Context: process context.
 */
void umacct_reader_init(struct reader *reader, const struct sk_buff *request)
{
	struct cgroup *own;

	*reader = (struct reader) { .all = may_see_all(request) };
	rcu_read_lock();
	own = task_dfl_cgroup(current);
	/* Where nobody is placed in cgroups of version 2, all are in the root. */
	if (own->level)
		reader->own = cgroup_id(own);
	rcu_read_unlock();
}

/**
 * umacct_reader_alloc() - find out on whose behalf a request for rows is answered
 * @request: from the current task
 *
 * Context: may sleep.
 * Return: the reader, for umacct_reader_free(), or NULL if memory ran out.
 */
struct reader *umacct_reader_alloc(const struct sk_buff *request)
{
	struct reader *reader = NULL;
	char *prefix = __getname();
	int len;

	if (!prefix)
		return NULL;
	len = cgroup_path(current->nsproxy->cgroup_ns->root_cset->dfl_cgrp, prefix, PATH_MAX);
	if (len < 0 || len >= PATH_MAX || !strcmp(prefix, "/"))
		len = 0;
	/* A task that doesn't read a dump to its end keeps this. */
	reader = kzalloc(struct_size(reader, prefix, len + 1), GFP_KERNEL_ACCOUNT);
	if (reader) {
		umacct_reader_init(reader, request);
		reader->pids = get_pid_ns(task_active_pid_ns(current));
		memcpy(reader->prefix, prefix, len);
		reader->prefix[len] = '\0';
	}
	__putname(prefix);
	return reader;
}

/**
 * umacct_reader_free() - undo umacct_reader_alloc()
 * @reader: or NULL
 *
 * Context: may sleep.
 */
void umacct_reader_free(struct reader *reader)
{
	if (!reader)
		return;
	put_pid_ns(reader->pids);
	kfree(reader);
}

static bool is_within(const struct account *account, u64 id)
{
	for (; account; account = account->parent)
		if (account->id == id)
			return true;
	return false;
}

/**
 * umacct_reader_may_see() - may it see an account?
 * @reader: the reader that asks
 * @account: the account
 *
 * Context: umacct_ledger_lock held.
 */
bool umacct_reader_may_see(const struct reader *reader, const struct account *account)
{
	return reader->all || (reader->own && is_within(account, reader->own));
}

/**
 * umacct_reader_asks_for() - is a row one of those that a dump is to have?
 * @reader: the reader that asks
 * @account: the row, or a client's
 *
 * Context: umacct_ledger_lock held.
 */
bool umacct_reader_asks_for(const struct reader *reader, const struct account *account)
{
	return umacct_reader_may_see(reader, account) &&
	       (!reader->subtree || is_within(account, reader->subtree));
}

/**
 * umacct_reader_path() - an account's path as its reader knows it
 * @reader: the reader that asks
 * @account: the account
 *
 * Context: any.
 */
const char *umacct_reader_path(const struct reader *reader, const struct account *account)
{
	size_t len = strlen(reader->prefix);

	if (!len || strncmp(account->path, reader->prefix, len) ||
	    (account->path[len] && account->path[len] != '/'))
		return account->path;
	return account->path[len] ? account->path + len : "/";
}
