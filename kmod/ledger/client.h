/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_CLIENT_H
#define UMACCT_CLIENT_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "ledger/account.h"
#include "ledger/hash_table.h"
#include "ledger/lock.h"
#include "ledger/row.h"

/**
 * struct client - a process that allocated on an account
 * @pid: its thread group's; found by its address, for its number may be used again
 * @account: referenced; may be offline, see account_nearest_online()
 * @start_time: as field 22 of /proc/PID/stat, in nanoseconds
 * @booked: bytes held, without managed memory
 * @booked_charged: the part of @booked that the kernel's memory controller sees
 * @managed: managed memory that is held
 * @refs: one for being listed, one from each record and call under way. It drops
 *	from 1 to 0 only under umacct_ledger_lock, when the client is taken off the list. A
 *	lookup without the lock gets a reference, or sees that the client is over
 * @member: of its account's clients, while it is listed
 * @row: in umacct_client_rows; empty while the client only waits for @refs to drop
 * @refused_tid: thread of the last refused allocation
 * @refused_pages: size of that request, in pages
 * @refused_block: block size of that request, in pages; a retry in smaller blocks is the
 *	same refusal
 * @refused_after: low 32 bits of @allocs at that time; an allocation in between makes it a
 *	new refusal
 *
 * With no more members than it has, one takes 192 bytes, which is a block of the kernel's.
 *
 * A process that moves to another cgroup becomes another client. umacct_ledger_lock guards all
 * members except @managed, @peak, @refs and @comm.
 */
struct client {
	struct pid *pid;
	struct account *account;
	u64 booked;
	u64 booked_charged;
	struct managed managed;
	u64 peak;
	u64 metadata;
	u64 allocs;
	u64 frees;
	u64 start_time;
	atomic_t refs;
	pid_t refused_tid;
	u32 refused_pages;
	u32 refused_block;
	u32 refused_after;
	char comm[TASK_COMM_LEN];
	struct hlist_node hash;
	struct row row;
	union {
		struct list_head member;
		struct rcu_head rcu;
	};
};

/* Guarded by umacct_ledger_lock. */
extern struct rows umacct_client_rows;
extern struct hash_table umacct_client_table;

/* Random and odd; constant. */
extern unsigned long umacct_client_hash_seed[2];

struct client *umacct_client_after_locked(u64 seq);
struct client *umacct_client_alloc(struct account *account);
void umacct_client_add_locked(struct client *client);
void umacct_client_free(struct client *client);
bool umacct_client_unlist_idle_locked(struct client *client);
void umacct_client_end(struct client *client);
void umacct_client_held_locked(const struct client *client, struct held *held);
bool umacct_client_is_over(const struct client *client);
bool umacct_client_is_exiting(const struct client *client);
void umacct_client_offline_locked(struct account *account);
int umacct_client_init(void);
void umacct_client_exit(void);

/*
 * Many processes have clients on one account, and one process on many accounts, and a tenant
 * chooses both. Multiplied by odd numbers that nobody knows, no two of them are more likely
 * to share a bucket than any others.
 */
static inline unsigned long client_hash_key(const struct pid *pid, u64 account_id)
{
	return (unsigned long)pid * umacct_client_hash_seed[0] +
	       account_id * umacct_client_hash_seed[1];
}

static inline struct hlist_head *client_bucket(const struct pid *pid, u64 account_id)
{
	return hash_table_bucket(&umacct_client_table, client_hash_key(pid, account_id));
}

/**
 * client_find_locked() - look a client up
 * @pid: of the thread group
 * @account_id: cgroup id
 *
 * Context: umacct_ledger_lock held.
 * Return: the client, without a reference, or NULL.
 */
static inline struct client *client_find_locked(const struct pid *pid, u64 account_id)
{
	struct client *client;

	lockdep_assert_held(&umacct_ledger_lock);
	hlist_for_each_entry(client, client_bucket(pid, account_id), hash)
		if (client->pid == pid && client->account->id == account_id &&
		    client->account->online)
			return client;
	return NULL;
}

/**
 * client_get() - look a client up
 * @pid: of the thread group
 * @account_id: cgroup id
 *
 * Context: an RCU reader.
 * Return: the client with a reference, or NULL if there is none that goes on.
 */
static inline struct client *client_get(const struct pid *pid, u64 account_id)
{
	struct client *client;

	hlist_for_each_entry_rcu(client, client_bucket(pid, account_id), hash,
				 rcu_read_lock_any_held())
		if (client->pid == pid && client->account->id == account_id &&
		    READ_ONCE(client->account->online))
			return likely(atomic_inc_not_zero(&client->refs)) ? client : NULL;
	return NULL;
}

/**
 * client_put() - drop a reference
 * @client: the client; freed if it was never listed and this was the last one
 *
 * Context: any.
 */
static inline void client_put(struct client *client)
{
	if (unlikely(atomic_dec_and_test(&client->refs)))
		umacct_client_free(client);
}

/* Takes the name of the thread that allocates now, which is the newest. */
static inline void client_name(struct client *client)
{
	/* Another thread may be changing it: some of both names then, and an end. */
	data_race(memcpy(client->comm, current->comm, TASK_COMM_LEN));
}

/**
 * client_records() - how many live allocations a client has
 * @client: listed
 *
 * Context: umacct_ledger_lock held.
 * Return: their number; with those that are being made.
 */
static inline u32 client_records(const struct client *client)
{
	return atomic_read(&client->refs) - 1;
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

/**
 * client_is_ending() - will a client that holds nothing hold something again?
 * @client: the client
 *
 * The usual end of a client is that its process exits, and closes the driver.
 *
 * Context: any; the client can't be freed meanwhile.
 * Return: true if it won't.
 */
static inline bool client_is_ending(const struct client *client)
{
	return client_exited(client) || !READ_ONCE(client->account->online) ||
	       ((current->flags & PF_EXITING) && client->pid == task_tgid(current));
}

#endif /* UMACCT_CLIENT_H */
