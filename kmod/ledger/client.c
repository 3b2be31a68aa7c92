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

struct rows umacct_client_rows;

/* The kernel keeps more for a process, and for a cgroup, than a sixteenth of this. */
#define BYTES_PER_BUCKET	SZ_256K

struct hash_table umacct_client_table;

unsigned long umacct_client_hash_seed[2] __ro_after_init;

static void idle_work_fn(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(idle_work, idle_work_fn);

/**
 * umacct_client_after_locked() - the next client, in order of creation
 * @seq: number of the last one's row, 0 for none
 *
 * Context: umacct_ledger_lock held.
 * Return: the client, without a reference, or NULL.
 */
struct client *umacct_client_after_locked(u64 seq)
{
	struct row *row = umacct_row_after_locked(&umacct_client_rows, seq);

	lockdep_assert_held(&umacct_ledger_lock);
	return row ? container_of(row, struct client, row) : NULL;
}

/**
 * umacct_client_alloc() - make a client for the current process
 * @account: whom it allocates on; the caller's reference passes to the client
 *
 * Context: may sleep.
 * Return: the client with a reference, not listed; or NULL, and the caller's
 *	reference on the account is dropped.
 */
struct client *umacct_client_alloc(struct account *account)
{
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client) {
		account_put(account);
		return NULL;
	}
	client->account = account;
	client->pid = get_pid(task_tgid(current));
	client->start_time = current->group_leader->start_boottime;
	atomic_set(&client->refs, 1);
	RB_CLEAR_NODE(&client->row.node);
	return client;
}

/* Holds nothing, and no call is under way that may change that. */
static bool is_idle(const struct client *client)
{
	return atomic_read(&client->refs) == 1;
}

/* Drops idle clients; gives up after a number of others. */
static void drop_idle_locked(struct account *account, unsigned int nr)
{
	unsigned int i;

	lockdep_assert_held(&umacct_ledger_lock);
	for (i = 0; i < IDLE_SEARCH && nr && !list_empty(&account->members); i++) {
		struct client *client = list_first_entry(&account->members, struct client, member);

		if (umacct_client_unlist_idle_locked(client))
			nr--;
		else
			list_move_tail(&client->member, &account->members);
	}
}

/**
 * umacct_client_add_locked() - list a new client
 * @client: from umacct_client_alloc()
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_client_add_locked(struct client *client)
{
	struct account *account = client->account;

	lockdep_assert_held(&umacct_ledger_lock);
	if (account->nr_members >= MEMBERS_FREE)
		drop_idle_locked(account, 1);
	atomic_inc(&client->refs);
	hlist_add_head_rcu(&client->hash, client_bucket(client->pid, account->id));
	umacct_row_add_locked(&umacct_client_rows, &client->row);
	list_add_tail(&client->member, &account->members);
	account->nr_members++;
	account_nearest_online(account)->clients++;
	queue_delayed_work(umacct_ledger_work, &idle_work, IDLE_DELAY);
}

/**
 * umacct_client_offline_locked() - an account's cgroup was removed
 * @account: the account
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_client_offline_locked(struct account *account)
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
 * umacct_client_free() - the last reference was dropped
 * @client: the client, not listed
 *
 * Freeing takes its time, so it is left to RCU.
 *
 * Context: any.
 */
void umacct_client_free(struct client *client)
{
	account_put(client->account);
	call_rcu(&client->rcu, client_free_rcu);
}

/**
 * umacct_client_unlist_idle_locked() - free a client, if it holds nothing
 * @client: the client, listed or just freed
 *
 * Context: umacct_ledger_lock held.
 * Return: has it been freed?
 */
bool umacct_client_unlist_idle_locked(struct client *client)
{
	lockdep_assert_held(&umacct_ledger_lock);
	if (atomic_cmpxchg(&client->refs, 1, 0) != 1)
		return false;
	hlist_del_rcu(&client->hash);
	umacct_row_remove_locked(&umacct_client_rows, &client->row);
	list_del(&client->member);
	count_sub(&client->account->nr_members, 1);
	count_sub(&account_nearest_online(client->account)->clients, 1);
	umacct_client_free(client);
	return true;
}

/**
 * umacct_client_end() - a client holds nothing any more, by what was freed just now without
 *	the lock
 * @client: the client; the caller is an RCU reader and has no reference any more
 *
 * Context: an RCU reader; umacct_ledger_lock not held.
 */
void umacct_client_end(struct client *client)
{
	unsigned long flags;

	if (!client_is_ending(client))
		return;
	raw_spin_lock_irqsave(&umacct_ledger_lock, flags);
	umacct_client_unlist_idle_locked(client);
	raw_spin_unlock_irqrestore(&umacct_ledger_lock, flags);
}

/**
 * umacct_client_held_locked() - what a client holds
 * @client: the client
 * @held: filled in
 *
 * Context: umacct_ledger_lock held.
 */
void umacct_client_held_locked(const struct client *client, struct held *held)
{
	lockdep_assert_held(&umacct_ledger_lock);
	held_read(held, client->booked, client->booked_charged, &client->managed);
	held->local = held->usage;
}

/**
 * umacct_client_is_over() - holds a client nothing, and never will?
 * @client: the client
 *
 * Context: umacct_ledger_lock held.
 */
bool umacct_client_is_over(const struct client *client)
{
	return is_idle(client) && (client_exited(client) || !client->account->online);
}

/**
 * umacct_client_is_exiting() - is what a client holds still coming back?
 * @client: the client
 *
 * A process that was killed while it waits in the driver is exiting, too: it runs nothing else
 * any more.
 *
 * Context: any.
 * Return: true if it holds something, and all threads of its process end, or have ended; false
 *	once the process has been reaped.
 */
bool umacct_client_is_exiting(const struct client *client)
{
	const struct task_struct *task;
	bool exiting = false;

	if (is_idle(client))
		return false;
	rcu_read_lock();
	task = pid_task(client->pid, PIDTYPE_TGID);
	if (task)
		exiting = (READ_ONCE(task->signal->flags) & SIGNAL_GROUP_EXIT) ||
			  !atomic_read(&task->signal->live);
	rcu_read_unlock();
	return exiting;
}

/* Looks at the next client; returns false if there is none. */
static bool reap_next(u64 *seq)
{
	struct client *client;

	raw_spin_lock_irq(&umacct_ledger_lock);
	client = umacct_client_after_locked(*seq);
	if (client) {
		*seq = client->row.seq;
		umacct_account_shorten_locked(client->account);
		if (umacct_client_is_over(client))
			umacct_client_unlist_idle_locked(client);
	}
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return client;
}

static void idle_work_fn(struct work_struct *work)
{
	u64 seq = 0;

	while (reap_next(&seq))
		cond_resched();
	if (READ_ONCE(umacct_client_rows.nr))
		queue_delayed_work(umacct_ledger_work, &idle_work, IDLE_DELAY);
}

/**
 * umacct_client_init() - make the table of clients
 *
 * Context: module initialisation.
 * Return: 0 or an error.
 */
int umacct_client_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(umacct_client_hash_seed); i++)
		umacct_client_hash_seed[i] = get_random_long() | 1;
	return umacct_hash_table_init(&umacct_client_table, BYTES_PER_BUCKET);
}

/**
 * umacct_client_exit() - forget all clients
 *
 * Context: module exit; there are no records any more, and there will be none.
 */
void umacct_client_exit(void)
{
	struct client *client;
	bool gone;

	cancel_delayed_work_sync(&idle_work);
	do {
		raw_spin_lock_irq(&umacct_ledger_lock);
		client = umacct_client_after_locked(0);
		gone = client && umacct_client_unlist_idle_locked(client);
		raw_spin_unlock_irq(&umacct_ledger_lock);
		cond_resched();
	} while (gone);
	WARN_ON_ONCE(client);
	umacct_hash_table_exit(&umacct_client_table);
}
