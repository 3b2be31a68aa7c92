// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: one for each process and the account it allocated on. A client stays
 * while its memory is held. One that holds nothing stays for what it did, while its
 * process and its cgroup live, and as long as there are not too many of them.
 */
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/count.h"
#include "ledger/lock.h"
#include "ledger/work.h"

/* How long a client that holds nothing may outlive its process. */
#define IDLE_DELAY	(2 * HZ)

/*
 * Clients that hold nothing are kept for what they once did, but no tenant may pile
 * them up: from so many clients of an account on, a new one takes the place of an idle
 * one. Clients that hold something are bounded by what they hold. To find an idle one,
 * a number of clients are looked at, those next time that weren't this time.
 */
#define MEMBERS_FREE	64
#define IDLE_SEARCH	64

struct rows client_rows;

/* The kernel keeps more for a process, and for a cgroup, than a sixteenth of this. */
#define BYTES_PER_BUCKET	SZ_256K

struct table client_table;

unsigned long client_hash_seed[2] __ro_after_init;

static void idle_work_fn(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(idle_work, idle_work_fn);

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

/* Holds nothing, and no call is under way that may change that. */
static bool is_idle(const struct client *client)
{
	return !client->records && client->refs == 1;
}

/* Drops idle clients; gives up after a number of others. */
static void drop_idle_locked(struct account *account, unsigned int nr)
{
	unsigned int i;

	lockdep_assert_held(&ledger_lock);
	for (i = 0; i < IDLE_SEARCH && nr && !list_empty(&account->members); i++) {
		struct client *client = list_first_entry(&account->members, struct client, member);

		if (is_idle(client)) {
			client_unlist_locked(client);
			nr--;
		} else {
			list_move_tail(&client->member, &account->members);
		}
	}
}

/**
 * client_add_locked() - list a new client
 * @client: from client_alloc()
 *
 * Context: ledger_lock held.
 */
void client_add_locked(struct client *client)
{
	struct account *account = client->account;

	lockdep_assert_held(&ledger_lock);
	if (account->nr_members >= MEMBERS_FREE)
		drop_idle_locked(account, 1);
	client->refs++;
	hlist_add_head(&client->hash, table_bucket(&client_table,
						   client_hash_key(client->pid, account->id)));
	row_add_locked(&client_rows, &client->row);
	list_add_tail(&client->member, &account->members);
	account->nr_members++;
	account_nearest_online(account)->clients++;
	queue_delayed_work(ledger_work, &idle_work, IDLE_DELAY);
}

/**
 * client_offline_locked() - an account's cgroup was removed
 * @account: the account
 *
 * Context: ledger_lock held.
 */
void client_offline_locked(struct account *account)
{
	drop_idle_locked(account, UINT_MAX);
}

static void client_free_rcu(struct rcu_head *rcu)
{
	struct client *client = container_of(rcu, struct client, rcu);

	put_pid(client->pid);
	kfree(client);
}

/**
 * client_free_locked() - the last reference was dropped; see client_put_locked()
 * @client: the client
 *
 * Freeing takes its time, so it is left to RCU.
 *
 * Context: ledger_lock held.
 */
void client_free_locked(struct client *client)
{
	lockdep_assert_held(&ledger_lock);
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
	hlist_del(&client->hash);
	row_remove_locked(&client_rows, &client->row);
	list_del(&client->member);
	count_sub(&client->account->nr_members, 1);
	count_sub(&account_nearest_online(client->account)->clients, 1);
	client_put_locked(client);
}

/**
 * client_is_over() - holds a client nothing, and never will?
 * @client: the client
 *
 * Context: ledger_lock held.
 */
bool client_is_over(const struct client *client)
{
	return is_idle(client) && (client_exited(client) || !client->account->online);
}

/* Looks at the next client; returns false if there is none. */
static bool reap_next(u64 *seq)
{
	struct client *client;

	raw_spin_lock_irq(&ledger_lock);
	client = client_after_locked(*seq);
	if (client) {
		*seq = client->row.seq;
		account_shorten_locked(client->account);
		if (client_is_over(client))
			client_unlist_locked(client);
	}
	raw_spin_unlock_irq(&ledger_lock);
	return client;
}

static void idle_work_fn(struct work_struct *work)
{
	u64 seq = 0;

	while (reap_next(&seq))
		cond_resched();
	if (READ_ONCE(client_rows.nr))
		queue_delayed_work(ledger_work, &idle_work, IDLE_DELAY);
}

/**
 * client_init() - make the table of clients
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int client_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(client_hash_seed); i++)
		client_hash_seed[i] = get_random_long() | 1;
	return table_init(&client_table, BYTES_PER_BUCKET);
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
	do {
		raw_spin_lock_irq(&ledger_lock);
		client = client_after_locked(0);
		if (client)
			client_unlist_locked(client);
		raw_spin_unlock_irq(&ledger_lock);
		cond_resched();
	} while (client);
	table_exit(&client_table);
}
