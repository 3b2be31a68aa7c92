// SPDX-License-Identifier: GPL-2.0-only
/*
 * The status as text, for a person at a shell: debugfs/umacct/status. Read-only and 0444, so that it
 * opens under lockdown too; debugfs itself is root's. Everything that a program needs is on netlink.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "debugfs.h"
#include "hooks/hook.h"
#include "ledger/client.h"
#include "ledger/ledger.h"
#include "pools.h"

static struct dentry *dir;

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
	seq_printf(seq, "metadata_page %u\nmetadata_object %u\nmetadata_file %u\nmetadata_lot %u\n",
		   driver_profile(HOOK_NVIDIA)->sizes.page,
		   driver_profile(HOOK_NVIDIA)->sizes.object,
		   driver_profile(HOOK_NVIDIA)->sizes.file, HEAP_LOT);
	profile = driver_profile(HOOK_NVIDIA);
	seq_printf(seq, "driver %s %s\n", driver_names[profile->state], profile->version);
	profile = driver_profile(HOOK_UVM);
	seq_printf(seq, "uvm %s %s\n", driver_names[profile->state], profile->version);
	for_each_hook(hook)
		if (umacct_hook_applies(hook))
			seq_printf(seq, "hook %s %s calls %llu missed %llu %s\n",
				   hook->probe.symbol, state_names[hook->state],
				   umacct_probe_calls(&hook->probe), probe_missed(&hook->probe),
				   hook->reason);
	umacct_hook_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(status);

/* Makes the file. Failures are not errors: it is a convenience. */
void umacct_debugfs_init(void)
{
	dir = debugfs_create_dir("umacct", NULL);
	debugfs_create_file("status", 0444, dir, NULL, &status_fops);
}

/* Removes the file. On return no task is reading it. */
void umacct_debugfs_exit(void)
{
	debugfs_remove(dir);
}
