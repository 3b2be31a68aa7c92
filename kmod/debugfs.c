// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger as text, for a person at a shell: debugfs/umacct/{accounts,clients,
 * status}. Read-only and 0444, so that it opens under lockdown too; debugfs
 * itself is root's. Everything that a program needs is on netlink.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/string_helpers.h>

#include "debugfs.h"
#include "hooks/table.h"
#include "ledger/account.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "ledger/lock.h"
#include "pools.h"

static struct dentry *dir;

static const char *limit_text(u64 limit, char *buf, size_t len)
{
	if (limit == UMACCT_UNLIMITED)
		return "max";
	snprintf(buf, len, "%llu", limit);
	return buf;
}

/* What a tenant chose must not look like another column or another line. */
static void put_name(struct seq_file *seq, const char *name)
{
	seq_escape_mem(seq, name, strlen(name), ESCAPE_NAP | ESCAPE_APPEND | ESCAPE_OCTAL, " \\");
}

static bool show_account(struct seq_file *seq, u64 *cursor)
{
	char hard[24], soft[24];
	struct account *a;

	raw_spin_lock_irq(&ledger_lock);
	a = account_after_locked(*cursor);
	if (a) {
		*cursor = a->row.seq;
		seq_printf(seq, "%llu ", a->id);
		put_name(seq, a->path);
		seq_printf(seq, " %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %s %s\n", a->usage,
			   a->local, a->peak, a->charged, a->usage - a->managed - a->metadata,
			   a->managed, a->metadata, a->allocs, a->frees,
			   a->failures, a->refusals,
			   limit_text(a->settings.hard, hard, sizeof(hard)),
			   limit_text(a->settings.soft, soft, sizeof(soft)));
	}
	raw_spin_unlock_irq(&ledger_lock);
	return a;
}

static int accounts_show(struct seq_file *seq, void *unused)
{
	u64 cursor = 0;

	ledger_refresh();
	seq_puts(seq, "id path usage local peak charged system managed metadata allocs frees failures refusals hard soft\n");
	while (!seq_has_overflowed(seq) && show_account(seq, &cursor))
		cond_resched();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(accounts);

static void put_client(struct seq_file *seq, const struct client *c)
{
	seq_printf(seq, "%d %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %d ", pid_nr(c->pid),
		   c->start_time, account_nearest_online(c->account)->id, c->usage, c->peak,
		   c->charged, c->usage - c->managed - c->metadata, c->managed, c->metadata,
		   c->allocs, c->frees, client_exited(c));
	put_name(seq, c->comm);
	seq_putc(seq, '\n');
}

static bool show_client(struct seq_file *seq, u64 *cursor)
{
	struct client *c;

	raw_spin_lock_irq(&ledger_lock);
	c = client_after_locked(*cursor);
	if (c) {
		*cursor = c->row.seq;
		if (!client_is_over(c))
			put_client(seq, c);
	}
	raw_spin_unlock_irq(&ledger_lock);
	return c;
}

static int clients_show(struct seq_file *seq, void *unused)
{
	u64 cursor = 0;

	ledger_refresh();
	seq_puts(seq, "pid start_time account usage peak charged system managed metadata allocs frees exited comm\n");
	while (!seq_has_overflowed(seq) && show_client(seq, &cursor))
		cond_resched();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clients);

static const char *const state_names[] = {
	[UMACCT_HOOK_IDLE] = "idle",
	[UMACCT_HOOK_ARMED] = "armed",
	[UMACCT_HOOK_OFF] = "off",
	[UMACCT_HOOK_FAILED] = "failed",
};

static const char *const driver_names[] = {
	[UMACCT_DRIVER_ABSENT] = "absent",
	[UMACCT_DRIVER_HOOKED] = "hooked",
	[UMACCT_DRIVER_UNKNOWN] = "unknown",
	[UMACCT_DRIVER_BROKEN] = "broken",
};

static int status_show(struct seq_file *seq, void *unused)
{
	const struct driver_profile *profile;
	struct ledger_totals totals;
	struct hook *hook;
	u64 pooled;

	seq_printf(seq, "version %s\n", UMACCT_VERSION);
	ledger_read_totals(&totals);
	seq_printf(seq, "usage %llu\ncharged %llu\nsystem %llu\nmanaged %llu\nmetadata %llu\ndriver_usage %llu\ndriver_peak %llu\n",
		   totals.usage, totals.charged, totals.usage - totals.managed - totals.metadata,
		   totals.managed, totals.metadata, totals.records.driver_usage,
		   totals.records.driver_peak);
	seq_printf(seq, "untracked %llu\nuntracked_count %llu\nstale_count %llu\n",
		   totals.records.untracked, totals.records.untracked_count,
		   totals.records.stale_count);
	seq_printf(seq, "accounts %u\nclients %u\nrecords %u\nreserve %llu\n", totals.accounts,
		   totals.clients, totals.records.nr, totals.settings.reserve);
	if (pools_read(&pooled))
		seq_printf(seq, "pools %llu\n", pooled);
	else
		seq_puts(seq, "pools unknown\n");

	hook_lock();
	/* Constants of the driver's series; see hooks/versions.h. */
	seq_printf(seq, "metadata_page %u\nmetadata_object %u\nmetadata_client %u\n",
		   driver_profile(HOOK_NVIDIA)->sizes.page,
		   driver_profile(HOOK_NVIDIA)->sizes.object,
		   driver_profile(HOOK_NVIDIA)->sizes.client);
	profile = driver_profile(HOOK_NVIDIA);
	seq_printf(seq, "driver %s %s\n", driver_names[profile->state], profile->version);
	profile = driver_profile(HOOK_UVM);
	seq_printf(seq, "uvm %s %s\n", driver_names[profile->state], profile->version);
	for_each_hook(hook)
		if (hook_applies(hook))
			seq_printf(seq, "hook %s %s calls %llu missed %llu %s\n",
				   hook->probe.symbol, state_names[hook->state],
				   probe_calls(&hook->probe), probe_missed(&hook->probe),
				   hook->reason);
	hook_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(status);

/**
 * debugfs_init() - make the files
 *
 * Context: module initialisation. Failures are not errors: it is a convenience.
 */
void debugfs_init(void)
{
	dir = debugfs_create_dir("umacct", NULL);
	debugfs_create_file("accounts", 0444, dir, NULL, &accounts_fops);
	debugfs_create_file("clients", 0444, dir, NULL, &clients_fops);
	debugfs_create_file("status", 0444, dir, NULL, &status_fops);
}

/**
 * debugfs_exit() - remove the files
 *
 * Context: module exit. On return nobody is reading them.
 */
void debugfs_exit(void)
{
	debugfs_remove(dir);
}
