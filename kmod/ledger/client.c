// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: one for each process and the account it allocated on. A client stays
 * while its memory is held. One that holds nothing stays for what it did, while its
 * process and its cgroup live, and as long as there are not too many of them.
 */
#include <linux/cgroup.h>
#include <linux/idr.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ledger/account.h"
#include "ledger/base.h"
#include "ledger/client.h"
#include "memcg.h"

/* How long a client that holds nothing may outlive its process. */
#define IDLE_DELAY	(2 * HZ)

/*
 * Clients that hold nothing are kept for what they once did, but no tenant may pile
 * them up: above a number of clients of an account, a new one takes the place of an idle
 * one. Clients that hold something are bounded by what they hold. To find an idle one,
 * a number of clients are looked at, those next time that weren't this time.
 */
#define MEMBERS_FREE	64
#define IDLE_SEARCH	64

/*
 * A tenant makes any number of accounts, while the numbers of clients are limited. Above this number
 * of clients no idle one is kept.
 */
static unsigned int many_clients = BIT(CLIENT_NUMBER_BITS - 2);
module_param(many_clients, uint, 0444);
MODULE_PARM_DESC(many_clients, "keep no process that holds nothing where there are more entries (default: 262144)");

struct rows umacct_client_rows;

/* The kernel keeps more for a process, and for a cgroup, than a sixteenth of this. */
#define BYTES_PER_BUCKET	SZ_256K

struct hash_table umacct_client_table;

struct client __rcu **umacct_clients;
static DEFINE_IDA(numbers);

unsigned long umacct_client_hash_seed[2] __ro_after_init;

static void idle_work_fn(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(idle_work, idle_work_fn);

/*
 * The next client behind the row of that number, in order of creation, without a reference, or
 * NULL.
 */
struct client *umacct_client_after_locked(u64 seq)
{
	struct row *row = umacct_row_after_locked(&umacct_client_rows, seq);

	lockdep_assert_held(&umacct_ledger_lock);
	return row ? container_of(row, struct client, row) : NULL;
}

/*
 * Makes a client for the current process, to which the caller's reference on the account passes.
 * Returns it with a reference, not listed; or NULL, and the reference on the account is dropped.
 * May sleep.
 */
struct client *umacct_client_alloc(struct account *account)
{
	struct client *client = kzalloc(sizeof(*client), GFP_LEDGER | __GFP_ACCOUNT);
	int number;

	/* See record_alloc(). */
	if (unlikely(!client) && !READ_ONCE(umacct_settings.precheck_enabled))
		client = kzalloc(sizeof(*client), GFP_LEDGER);
	number = client ? ida_alloc_range(&numbers, 1, CLIENT_NUMBERS - 1, GFP_LEDGER) : -ENOMEM;
	if (number < 0) {
		kfree(client);
		account_put(account);
		return NULL;
	}
	client->number = number;
	client->account = account;
	client->pid = get_pid(task_tgid(current));
	client->start_time = current->group_leader->start_boottime;
	atomic_set(&client->refs, 1);
	RB_CLEAR_NODE(&client->row.node);
	rcu_assign_pointer(umacct_clients[number], client);
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

/* Lists a client from umacct_client_alloc(). */
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

/* Drops the idle clients of an account whose cgroup was removed. */
void umacct_client_offline_locked(struct account *account)
{
	drop_idle_locked(account, UINT_MAX);
}

static void client_free_rcu(struct rcu_head *rcu)
{
	struct client *client = container_of(rcu, struct client, rcu);

	ida_free(&numbers, client->number);
	if (client->heap.objcg)
		obj_cgroup_put(client->heap.objcg);
	put_pid(client->pid);
	kfree(client);
}

/*
 * Frees a client that is not listed, and whose last reference was dropped. Freeing takes its time,
 * so it is left to RCU.
 */
void umacct_client_free(struct client *client)
{
	RCU_INIT_POINTER(umacct_clients[client->number], NULL);
	account_put(client->account);
	call_rcu(&client->rcu, client_free_rcu);
}

/* Frees a client if it holds nothing. Returns whether it has. */
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

/*
 * A client, on which the caller has no reference any more, holds nothing, by what was freed just
 * now without the lock. For RCU readers.
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

/* Does a client hold nothing, and never will? Under umacct_ledger_lock. */
bool umacct_client_is_over(const struct client *client)
{
	return is_idle(client) && (client_exited(client) || !client->account->online);
}

/*
 * Is what a client holds still coming back? Yes if all threads of its process end, or have ended,
 * until the process has been reaped. A process that was killed while it waits in the driver is
 * exiting, too: it runs nothing else any more.
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
		if (umacct_client_is_over(client) || umacct_client_rows.nr > many_clients)
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

/* Makes the tables of clients. */
int umacct_client_init(void)
{
	unsigned int i;
	int err;

	umacct_clients = kvcalloc(CLIENT_NUMBERS, sizeof(*umacct_clients), GFP_KERNEL);
	if (!umacct_clients)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(umacct_client_hash_seed); i++)
		umacct_client_hash_seed[i] = get_random_long() | 1;
	err = umacct_hash_table_init(&umacct_client_table, BYTES_PER_BUCKET);
	if (err)
		kvfree(umacct_clients);
	return err;
}

/* Forgets all clients; there are no records any more, and there will be none. */
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
	kvfree(umacct_clients);
}

/* --- attribution ---------------------------------------------------------- */

/*
 * Attribution of an allocation: to the account of the requesting process's cgroup, and to its
 * client. The driver's own allocations have no owner. attribution_cgroup() in client.h finds the
 * cgroup; kind_for_caller() in hooks/adapter.h recognises the driver's own.
 */

/* The account if it is there, with a reference. */
static struct account *attribution_account_there(bool uvm)
{
	struct account *account;

	raw_spin_lock_irq(&umacct_ledger_lock);
	/* Preemption is off, so the cgroup stays. */
	account = umacct_account_find_locked(cgroup_id(attribution_cgroup(uvm)));
	if (account)
		account_hold(account);
	raw_spin_unlock_irq(&umacct_ledger_lock);
	return account;
}

/* The account, made if need be, with a reference. */
static struct account *attribution_account(bool uvm)
{
	struct account *account = attribution_account_there(uvm);
	struct cgroup *cgrp;

	/* A driver's own thread has no client to find it by, each time. */
	if (account)
		return account;
	rcu_read_lock();
	cgrp = attribution_cgroup(uvm);
	if (!cgroup_tryget(cgrp))
		cgrp = NULL;
	rcu_read_unlock();
	if (!cgrp)
		return NULL;
	account = umacct_account_create(cgrp);
	cgroup_put(cgrp);
	return account;
}

/* Attributes an allocation that is its process's first on an account. May sleep. */
void umacct_attribution_make(struct allocation *alloc)
{
	struct account *account = attribution_account(alloc->uvm);
	struct client *client, *there;

	if (!account)
		return;
	if (!works_for_a_process()) {
		alloc->account = account;
		return;
	}
	client = umacct_client_alloc(account);
	if (!client)
		return;
	raw_spin_lock_irq(&umacct_ledger_lock);
	/* Other threads of the process may have been here meanwhile. */
	there = client_find(client->pid, account->id);
	if (there) {
		atomic_inc(&there->refs);
		client_put(client);
		client = there;
	} else {
		umacct_client_add_locked(client);
	}
	alloc->client = client;
	alloc->account = client->account;
	raw_spin_unlock_irq(&umacct_ledger_lock);
}
