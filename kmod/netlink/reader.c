// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accounts that a reader may see, and their names for it. It is decided once, at the start of a
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
 * A reader of every file may read every account, too, so that a program which only reads, as an
 * exporter of metrics, needs no capability that could change anything.
 */
static bool may_see_all(const struct sk_buff *request)
{
	return netlink_capable(request, CAP_SYS_ADMIN) ||
	       netlink_capable(request, CAP_DAC_READ_SEARCH);
}

/* Finds out what the current task's request may see, but for the namespaces of rows. */
void umacct_reader_init(struct reader *reader, const struct sk_buff *request)
{
	struct cgroup *own;

	*reader = (struct reader) { .all = may_see_all(request) };
	rcu_read_lock();
	own = task_dfl_cgroup(current);
	/* All tasks are in the root if none is placed in cgroups of version 2. */
	if (own->level)
		reader->own = cgroup_id(own);
	rcu_read_unlock();
}

/*
 * Finds out what the current task's request for rows may see. Returns NULL if memory ran out. May
 * sleep.
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

/* Undoes umacct_reader_alloc(); @reader may be NULL. */
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

/* May the reader see an account? Under umacct_ledger_lock. */
bool umacct_reader_may_see(const struct reader *reader, const struct account *account)
{
	return reader->all || (reader->own && is_within(account, reader->own));
}

/*
 * Is a row, of an account or of a client of it, one of those that a dump is to have? Under
 * umacct_ledger_lock.
 */
bool umacct_reader_asks_for(const struct reader *reader, const struct account *account)
{
	return umacct_reader_may_see(reader, account) &&
	       (!reader->subtree || is_within(account, reader->subtree));
}

/* An account's path as its reader knows it. */
const char *umacct_reader_path(const struct reader *reader, const struct account *account)
{
	size_t len = strlen(reader->prefix);

	if (!len || strncmp(account->path, reader->prefix, len) ||
	    (account->path[len] && account->path[len] != '/'))
		return account->path;
	return account->path[len] ? account->path + len : "/";
}
