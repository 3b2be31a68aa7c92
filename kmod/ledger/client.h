/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CLIENT_H
#define UMACCT_CLIENT_H

#include <linux/list.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "ledger/account.h"
#include "ledger/lock.h"
#include "ledger/row.h"
#include "ledger/table.h"

/**
 * struct client - a process that allocated on an account
 * @pid: its thread group's; found by its address, for its number may be used again
 * @account: referenced; may be offline, see account_nearest_online()
 * @start_time: as field 22 of /proc/PID/stat, in nanoseconds
 * @refs: one for being listed, one from each record and call under way
 * @records: live allocations
 * @member: of its account's clients
 * @row: in client_rows; a client that isn't is only waiting for @refs
 * @refused_tid: thread whose allocation was refused last
 * @refused_pages: how many pages it asked for
 * @refused_block: in blocks of so many of the kernel's; with less it is the same refusal
 * @refused_after: lower half of @allocs by then; after one more it is another refusal
 *
 * A process that is moved to another cgroup is another client from then on.
 */
struct client {
	struct pid *pid;
	struct account *account;
	u64 usage;
	u64 peak;
	u64 charged;
	u64 managed;
	u64 metadata;
	u64 allocs;
	u64 frees;
	u64 start_time;
	u32 refs;
	u32 records;
	pid_t refused_tid;
	u32 refused_pages;
	u32 refused_block;
	u32 refused_after;
	char comm[TASK_COMM_LEN];
	struct hlist_node hash;
	struct row row;
	struct list_head member;
	struct rcu_head rcu;
};

/* Guarded by ledger_lock. */
extern struct rows client_rows;
extern struct table client_table;

/* Random and odd; constant. */
extern unsigned long client_hash_seed[2];

struct client *client_after_locked(u64 seq);
struct client *client_alloc(struct account *account);
void client_add_locked(struct client *client);
void client_free_locked(struct client *client);
void client_unlist_locked(struct client *client);
bool client_is_over(const struct client *client);
void client_offline_locked(struct account *account);
int client_init(void);
void client_exit(void);

/*
 * Many processes have clients on one account, and one process on many accounts, and a tenant
 * chooses both. Multiplied by odd numbers that nobody knows, no two of them are more likely
 * to share a bucket than any others.
 */
static inline unsigned long client_hash_key(const struct pid *pid, u64 account_id)
{
	return (unsigned long)pid * client_hash_seed[0] + account_id * client_hash_seed[1];
}

/**
 * client_find_locked() - look a client up
 * @pid: of the thread group
 * @account_id: cgroup id
 *
 * Context: ledger_lock held.
 * Return: the client, without a reference, or NULL.
 */
static inline struct client *client_find_locked(const struct pid *pid, u64 account_id)
{
	struct client *client;

	lockdep_assert_held(&ledger_lock);
	hlist_for_each_entry(client,
			     table_bucket(&client_table, client_hash_key(pid, account_id)), hash)
		if (client->pid == pid && client->account->id == account_id &&
		    client->account->online)
			return client;
	return NULL;
}

/**
 * client_put_locked() - drop a reference
 * @client: the client; freed if this was the last one
 *
 * Context: ledger_lock held.
 */
static inline void client_put_locked(struct client *client)
{
	if (unlikely(!--client->refs))
		client_free_locked(client);
}

/**
 * client_exited() - is the process gone?
 * @client: the client
 *
 * Context: any.
 * Return: true if it has been reaped.
 */
static inline bool client_exited(const struct client *client)
{
	return !pid_has_task(client->pid, PIDTYPE_TGID);
}

#endif /* UMACCT_CLIENT_H */
