// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: one for each process and the account it allocated on. A client stays
 * while its process lives or its memory is held; whichever ends last ends it.
 */
#include <linux/hashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/count.h"
#include "ledger/lock.h"

#define CLIENT_HASH_BITS	12

/* How long a client that holds nothing may outlive its process. */
#define IDLE_DELAY	(2 * HZ)

struct rows client_rows;

static DEFINE_HASHTABLE(client_hash, CLIENT_HASH_BITS);

static void idle_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(idle_work, idle_work_fn);

/**
 * client_find_locked() - look a client up
 * @pid: of the thread group
 * @account_id: cgroup id
 *
 * Context: ledger_lock held.
 * Return: the client, without a reference, or NULL.
 */
struct client *client_find_locked(const struct pid *pid, u64 account_id)
{
	struct client *client;

	lockdep_assert_held(&ledger_lock);
	hash_for_each_possible(client_hash, client, hash, (unsigned long)pid)
		if (client->pid == pid && client->account->id == account_id &&
		    client->account->online)
			return client;
	return NULL;
}

/**
 * client_after_locked() - the next client, in order of creation
 * @seq: number of the last one's row, 0 for none
 *
 * Context: ledger_lock held.
 * Return: the client, without a reference, or NULL.
 */
struct client *client_after_locked(u64 seq)
{
	struct row *row = row_after_locked(&client_rows, seq);

	lockdep_assert_held(&ledger_lock);
	return row ? container_of(row, struct client, row) : NULL;
}

/**
 * client_alloc() - make a client for the current process
 * @account: whom it allocates on; the caller's reference passes to the client
 *
 * Context: may sleep.
 * Return: the client with a reference, not listed; or NULL, and the caller's
 *	reference on the account is dropped.
 */
struct client *client_alloc(struct account *account)
{
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client) {
		account_put(account);
		return NULL;
	}
	client->account = account;
	client->pid = get_pid(task_tgid(current));
	client->start_time = current->group_leader->start_boottime;
	client->refs = 1;
	RB_CLEAR_NODE(&client->row.node);
	return client;
}

/**
 * client_add_locked() - list a new client
 * @client: from client_alloc()
 *
 * Context: ledger_lock held.
 */
void client_add_locked(struct client *client)
{
	lockdep_assert_held(&ledger_lock);
	client->refs++;
	hash_add(client_hash, &client->hash, (unsigned long)client->pid);
	row_add_locked(&client_rows, &client->row);
	account_nearest_online(client->account)->clients++;
	queue_delayed_work(system_wq, &idle_work, IDLE_DELAY);
}

static void client_free_rcu(struct rcu_head *rcu)
{
	struct client *client = container_of(rcu, struct client, rcu);

	put_pid(client->pid);
	kfree(client);
}

/**
 * client_put_locked() - drop a reference
 * @client: the client; freed if this was the last one
 *
 * Freeing takes its time, so it is left to RCU.
 *
 * Context: ledger_lock held.
 */
void client_put_locked(struct client *client)
{
	lockdep_assert_held(&ledger_lock);
	if (--client->refs)
		return;
	account_put_locked(client->account);
	call_rcu(&client->rcu, client_free_rcu);
}

/**
 * client_unlist_locked() - take a client that holds nothing off the list
 * @client: the client
 *
 * Context: ledger_lock held.
 */
void client_unlist_locked(struct client *client)
{
	lockdep_assert_held(&ledger_lock);
	if (RB_EMPTY_NODE(&client->row.node))
		return;
	hash_del(&client->hash);
	row_remove_locked(&client_rows, &client->row);
	count_sub(&account_nearest_online(client->account)->clients, 1);
	client_put_locked(client);
}

/**
 * client_exited() - is the process gone?
 * @client: the client
 *
 * Context: any.
 * Return: true if it has been reaped.
 */
bool client_exited(const struct client *client)
{
	return !pid_has_task(client->pid, PIDTYPE_TGID);
}

/* Looks at the next client; returns false if there is none. */
static bool reap_next(u64 *seq, bool *idle)
{
	struct client *client;

	raw_spin_lock(&ledger_lock);
	client = client_after_locked(*seq);
	if (client) {
		*seq = client->row.seq;
		if (!client->records) {
			if (client_exited(client))
				client_unlist_locked(client);
			else
				*idle = true;
		}
	}
	raw_spin_unlock(&ledger_lock);
	return client;
}

/* Returns whether there are clients left that hold nothing, to be looked at later. */
static bool reap(void)
{
	bool idle = false;
	u64 seq = 0;

	while (reap_next(&seq, &idle))
		cond_resched();
	return idle;
}

static void idle_work_fn(struct work_struct *work)
{
	if (reap())
		queue_delayed_work(system_wq, &idle_work, IDLE_DELAY);
}

/**
 * client_reap() - forget processes that are gone and hold nothing
 *
 * Context: ledger_lock not held; may sleep.
 */
void client_reap(void)
{
	reap();
}

/**
 * client_exit() - forget all clients
 *
 * Context: module exit; there are no records any more, and there will be none.
 */
void client_exit(void)
{
	struct client *client;

	cancel_delayed_work_sync(&idle_work);
	raw_spin_lock(&ledger_lock);
	while ((client = client_after_locked(0)))
		client_unlist_locked(client);
	raw_spin_unlock(&ledger_lock);
}
