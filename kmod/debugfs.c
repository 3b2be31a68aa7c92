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
#include "ledger/read.h"
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

static int show_account(const struct account *a, void *arg)
{
	struct seq_file *seq = arg;
	char hard[24], soft[24];
	struct held held;

	seq_printf(seq, "%llu ", a->id);
	put_name(seq, a->path);
	umacct_account_held_locked(a, &held);
	seq_printf(seq, " %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %s %s\n",
		   held.usage, held.local, a->peak, held.charged,
		   held.usage - held.managed - a->metadata, held.managed, a->metadata,
		   a->allocs, a->frees, a->failures, a->refusals,
		   limit_text(a->settings.hard, hard, sizeof(hard)),
		   limit_text(a->settings.soft, soft, sizeof(soft)));
	return 0;
}

static int accounts_show(struct seq_file *seq, void *unused)
{
	u64 cursor = 0;

	umacct_ledger_refresh();
	seq_puts(seq, "id path usage local peak charged system managed metadata allocs frees failures refusals hard soft\n");
	while (!seq_has_overflowed(seq) &&
	       umacct_read_next_account(&cursor, NULL, show_account, seq))
		cond_resched();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(accounts);

static int show_client(const struct client *c, const struct account *account, void *arg)
{
	struct seq_file *seq = arg;
	struct held held;

	umacct_client_held_locked(c, &held);
	seq_printf(seq, "%d %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %d ", pid_nr(c->pid),
		   c->start_time, account->id, held.usage, c->peak, held.charged,
		   held.usage - held.managed - c->metadata, held.managed, c->metadata,
		   c->allocs, c->frees, client_exited(c));
	put_name(seq, c->comm);
	seq_putc(seq, '\n');
	return 0;
}

static int clients_show(struct seq_file *seq, void *unused)
{
	u64 cursor = 0;

	umacct_ledger_refresh();
	seq_puts(seq, "pid start_time account usage peak charged system managed metadata allocs frees exited comm\n");
	while (!seq_has_overflowed(seq) &&
	       umacct_read_next_client(&cursor, show_client, seq))
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
	umacct_ledger_read_totals(&totals);
	seq_printf(seq, "usage %llu\ncharged %llu\nsystem %llu\nmanaged %llu\nmetadata %llu\ndriver_usage %llu\ndriver_peak %llu\n",
		   totals.usage, totals.charged, totals.usage - totals.managed - totals.metadata,
		   totals.managed, totals.metadata, totals.records.driver_usage,
		   totals.records.driver_peak);
	seq_printf(seq, "untracked %llu\nuntracked_count %llu\nstale_count %llu\n",
		   totals.records.untracked, totals.records.untracked_count,
		   totals.records.stale_count);
	seq_printf(seq, "accounts %u\nclients %u\nrecords %u\nreserve %llu\n", totals.accounts,
		   totals.clients, totals.records.nr, totals.settings.reserve);
	if (umacct_pools_read(&pooled))
		seq_printf(seq, "pools %llu\n", pooled);
	else
		seq_puts(seq, "pools unknown\n");

	umacct_hook_lock();
	/* Constants of the driver's series; see hooks/driver_versions.h. */
	seq_printf(seq, "metadata_page %u\nmetadata_object %u\nmetadata_client %u\nmetadata_file %u\n",
		   driver_profile(HOOK_NVIDIA)->sizes.page,
		   driver_profile(HOOK_NVIDIA)->sizes.object,
		   driver_profile(HOOK_NVIDIA)->sizes.client,
		   driver_profile(HOOK_NVIDIA)->sizes.file);
	profile = driver_profile(HOOK_NVIDIA);
	seq_printf(seq, "driver %s %s\n", driver_names[profile->state], profile->version);
	profile = driver_profile(HOOK_UVM);
	seq_printf(seq, "uvm %s %s\n", driver_names[profile->state], profile->version);
	for_each_hook(hook)
		if (umacct_hook_applies(hook))
			seq_printf(seq, "hook %s %s calls %llu missed %llu %s\n",
				   hook->probe.symbol, state_names[hook->state],
				   umacct_probe_calls(&hook->probe), umacct_probe_missed(&hook->probe),
				   hook->reason);
	umacct_hook_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(status);

/**
 * umacct_debugfs_init() - make the files
 *
 * Context: module initialisation. Failures are not errors: it is a convenience.
 */
void umacct_debugfs_init(void)
{
	dir = debugfs_create_dir("umacct", NULL);
	debugfs_create_file("accounts", 0444, dir, NULL, &accounts_fops);
	debugfs_create_file("clients", 0444, dir, NULL, &clients_fops);
	debugfs_create_file("status", 0444, dir, NULL, &status_fops);
}

/**
 * umacct_debugfs_exit() - remove the files
 *
 * Context: module exit. On return nobody is reading them.
 */
void umacct_debugfs_exit(void)
{
	debugfs_remove(dir);
}
