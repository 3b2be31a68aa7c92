// SPDX-License-Identifier: GPL-2.0-only
/*
 * umacct: account for the system memory that NVIDIA's driver takes, by cgroup.
 */
#include <linux/module.h>

#include "hooks/charge.h"
#include "debugfs.h"
#include "hooks/driver.h"
#include "ledger/event.h"
#include "ledger/ledger.h"
#include "ledger/settings.h"
#include "memcg.h"
#include "netlink/family.h"
#include "probe/probe.h"

static bool charge;
module_param(charge, bool, 0444);
MODULE_PARM_DESC(charge, "charge the driver's pages to memory cgroups from the start (default: no)");

static int __init umacct_init(void)
{
	int err;

	err = probe_system_init();
	if (err)
		goto err_say;
	err = ledger_init();
	if (err)
		goto err_probe;
	err = drivers_prepare();
	if (err)
		goto err_ledger;
	/* A second copy of this module fails here, before it hooks anything. */
	err = family_init();
	if (err)
		goto err_drivers;
	event_init(family_send_event);
	err = drivers_init();
	if (err)
		goto err_netlink;
	if (charge) {
		const char *why = "";

		hook_lock();
		charge = charge_possible(&why);
		hook_unlock();
		if (!charge && memcg_comes_later()) {
			pr_info("charging begins with the first memory cgroup\n");
			charge = true;
		}
		if (charge) {
			settings_set_charge_default(true);
			driver_rearm();
		} else {
			pr_warn("charging stays off: %s\n", why);
		}
	}
	debugfs_init();
	return 0;

err_netlink:
	family_exit();
err_drivers:
	drivers_release();
err_ledger:
	ledger_exit();
err_probe:
	probe_system_exit();
err_say:
	pr_err("not loaded: error %d\n", err);
	return err;
}

static void __exit umacct_exit(void)
{
	debugfs_exit();
	drivers_exit();
	event_flush();
	family_exit();
	drivers_release();
	ledger_exit();
	probe_system_exit();
}

module_init(umacct_init);
module_exit(umacct_exit);
MODULE_DESCRIPTION("Account and limit the system memory of NVIDIA's driver by cgroup");
MODULE_AUTHOR("the umacct maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION(UMACCT_VERSION);
