// SPDX-License-Identifier: GPL-2.0-only
/*
 * umacct: account for the system memory that NVIDIA's driver takes, by cgroup.
 */
#include <linux/module.h>

#include "debugfs.h"
#include "hooks/driver.h"
#include "hooks/hook.h"
#include "ledger/account.h"
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

	err = umacct_probe_system_init();
	if (err)
		goto err_say;
	err = umacct_ledger_init();
	if (err)
		goto err_probe;
	umacct_drivers_prepare();
	/* A second copy of this module fails here, before it hooks anything. */
	err = umacct_family_init();
	if (err)
		goto err_ledger;
	umacct_event_init(umacct_family_send_event);
	err = umacct_drivers_init();
	if (err)
		goto err_netlink;
	if (charge) {
		const char *why = "";

		umacct_hook_lock();
		charge = umacct_charge_possible(&why);
		umacct_hook_unlock();
		if (!charge && umacct_memcg_comes_later()) {
			pr_info("charging begins with the first memory cgroup\n");
			charge = true;
		}
		if (charge) {
			umacct_settings_set_charge_default(true);
			umacct_driver_rearm();
		} else {
			pr_warn("charging stays off: %s\n", why);
		}
	}
	umacct_debugfs_init();
	return 0;

err_netlink:
	umacct_family_exit();
	umacct_drivers_release();
err_ledger:
	umacct_ledger_exit();
err_probe:
	umacct_probe_system_exit();
err_say:
	pr_err("not loaded: error %d\n", err);
	return err;
}

static void __exit umacct_exit(void)
{
	umacct_debugfs_exit();
	umacct_drivers_exit();
	umacct_event_flush();
	umacct_family_exit();
	umacct_drivers_release();
	umacct_ledger_exit();
	umacct_probe_system_exit();
}

module_init(umacct_init);
module_exit(umacct_exit);
MODULE_DESCRIPTION("Account and limit the system memory of NVIDIA's driver by cgroup");
MODULE_AUTHOR("the umacct maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION(UMACCT_VERSION);
