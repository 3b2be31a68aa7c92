// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drivers that are hooked, through load and unload: which hooks are armed when.
 *
 * A driver comes or goes under driver_mutex, with all that has to be waited for. States and
 * profiles change under umacct_hook_lock() besides, where no task is waited for: who asks for the
 * status gets it, however long a task stays in the driver. The notifier of modules takes
 * both, so a driver can't go while its hooks are being armed.
 */
#include <linux/kobject.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>

#include "hooks/charge.h"
#include "hooks/driver.h"
#include "hooks/hook.h"
#include "hooks/metadata.h"
#include "hooks/way_out.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "pools.h"

static DEFINE_MUTEX(driver_mutex);

/* No driver is hooked any more; guarded by driver_mutex. */
static bool leaving;

/* Indexed by enum hook_module. */
static const char *const module_names[HOOK_MODULES] = {
	[HOOK_NVIDIA] = "nvidia",
	[HOOK_UVM] = "nvidia_uvm",
	[HOOK_KERNEL] = "the kernel",
};

static bool is_optional(const struct hook *hook)
{
	return hook->wanted && umacct_hook_applies(hook) &&
	       umacct_driver_profiles[hook->module].state == UMACCT_DRIVER_HOOKED;
}

static void arm_wanted(void)
{
	struct hook *hook;

	for_each_hook(hook)
		if (is_optional(hook) && hook->state != UMACCT_HOOK_ARMED && hook->wanted())
			umacct_hook_arm(hook);
}

static void disarm_unwanted(void)
{
	struct hook *hook;

	for_each_hook(hook) {
		if (!is_optional(hook) || hook->state == UMACCT_HOOK_OFF || hook->wanted())
			continue;
		if (hook->state == UMACCT_HOOK_ARMED)
			umacct_hook_disarm(hook, UMACCT_HOOK_OFF);
		else
			umacct_hook_leave_off(hook);
	}
}

/*
 * Disarms in reverse order: hooks of allocations before those of frees, so that the free of
 * every recorded allocation is seen. Nothing is armed again.
 */
static void disarm(enum hook_module module)
{
	struct hook *hook;

	umacct_driver_profiles[module].state = UMACCT_DRIVER_ABSENT;
	for_each_hook_reverse(hook)
		if (hook->module == module && !hook->quiesce)
			umacct_probe_disarm_soon(&hook->probe);
	synchronize_rcu();
	for_each_hook_reverse(hook)
		if (hook->module == module)
			umacct_hook_disarm(hook, UMACCT_HOOK_IDLE);
}

/*
 * Forgets a driver's records: their frees are not seen any more. @gone: nor is anything that it still
 * allocated; no if it was not followed in the first place.
 *
 * Context: after disarm() and umacct_probe_wait(); umacct_hook_lock() not held.
 */
static void drop_records(enum hook_module module, bool gone)
{
	struct hook *hook;
	u64 dropped;

	for_each_hook(hook)
		if (hook->module == module)
			umacct_probe_drain(&hook->probe);
	if (module == HOOK_KERNEL)
		return;
	if (module == HOOK_UVM)
		umacct_va_space_forget();
	dropped = umacct_ledger_drop(module == HOOK_UVM, gone);
	if (dropped)
		pr_info("%s is no longer followed: %llu allocations forgotten\n",
			module_names[module], dropped);
}

/* Context: under umacct_hook_lock(), after drop_records(). */
static void forget(enum hook_module module)
{
	if (module == HOOK_NVIDIA)
		umacct_pools_detach();
	memset(&umacct_driver_profiles[module], 0, sizeof(umacct_driver_profiles[module]));
}

static void detach(enum hook_module module)
{
	lockdep_assert_held(&driver_mutex);
	umacct_hook_lock();
	disarm(module);
	umacct_hook_unlock();
	umacct_probe_wait();
	drop_records(module, true);
	umacct_hook_lock();
	forget(module);
	umacct_hook_unlock();
}

/* Return: false if a required hook can't be armed; what is armed stays so. */
static bool arm(enum hook_module module)
{
	struct driver_profile *profile = &umacct_driver_profiles[module];
	struct hook *hook;

	for_each_hook(hook) {
		if (hook->module != module || !umacct_hook_applies(hook))
			continue;
		if (hook->wanted && !hook->wanted()) {
			umacct_hook_leave_off(hook);
			continue;
		}
		umacct_hook_arm(hook);
		if (hook->state == UMACCT_HOOK_FAILED && hook->required) {
			snprintf(profile->reason, sizeof(profile->reason),
				 "no hook at %s: %s; nothing is accounted",
				 hook->probe.symbol, hook->reason);
			return false;
		}
	}
	return true;
}

/* The first nvidia-uvm had no chunks to follow. */
static bool is_followed(enum hook_module module)
{
	struct hook *hook;

	for_each_hook(hook)
		if (hook->module == module && hook->required && umacct_hook_applies(hook))
			return true;
	return false;
}

/* Return: false if it is not to be followed though some of its hooks were armed. */
static bool try_attach(enum hook_module module, struct module *mod)
{
	struct driver_profile *profile = &umacct_driver_profiles[module];
	bool known = umacct_driver_identify(profile, mod);
	struct hook *hook;

	/* Read before anything is armed: memory that others take meanwhile is theirs. */
	WRITE_ONCE(profile->live, READ_ONCE(mod->state) == MODULE_STATE_LIVE);
	if (module == HOOK_NVIDIA)
		umacct_pools_attach(known ? mod : NULL, profile->pools_expected);
	if (!known) {
		pr_warn("%s\n", profile->reason);
		return true;
	}
	if (!is_followed(module)) {
		profile->state = UMACCT_DRIVER_UNKNOWN;
		snprintf(profile->reason, sizeof(profile->reason), "%s %s is not followed",
			 mod->name, mod->version ?: "unknown");
		pr_info("%s\n", profile->reason);
		return true;
	}
	if (arm(module)) {
		profile->state = UMACCT_DRIVER_HOOKED;
		pr_info("following %s %s\n", mod->name, profile->version);
		if (profile->reason[0])
			pr_warn("%s\n", profile->reason);
		return true;
	}
	profile->state = UMACCT_DRIVER_BROKEN;
	pr_warn("%s\n", profile->reason);
	for_each_hook_reverse(hook)
		if (hook->module == module && hook->state == UMACCT_HOOK_ARMED)
			umacct_hook_disarm(hook, UMACCT_HOOK_OFF);
	return false;
}

static void attach(enum hook_module module, struct module *mod)
{
	bool done;

	lockdep_assert_held(&driver_mutex);
	umacct_hook_lock();
	done = try_attach(module, mod);
	umacct_hook_unlock();
	if (done)
		return;
	umacct_probe_wait();
	drop_records(module, false);
}

/*
 * A setting has changed. What is wanted is armed on return. What isn't is disarmed
 * later: that waits for all tasks, and the caller may hold what others wait for.
 */
void umacct_driver_rearm(void)
{
	umacct_hook_lock();
	arm_wanted();
	umacct_hook_unlock();
	queue_work(umacct_ledger_work, &umacct_hook_work);
}

/*
 * Says in a sentence why not everything is enforced that is asked for, or NULL if it is. What is
 * asked for may change from one call to the next. Under umacct_hook_lock(), as long as the answer
 * is used.
 */
const char *umacct_driver_unenforced(void)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);
	const struct driver_profile *uvm = driver_profile(HOOK_UVM);
	struct hook *hook;

	if (profile->state == UMACCT_DRIVER_ABSENT)
		return "the driver is not loaded; the setting takes effect when it is";
	if (profile->state != UMACCT_DRIVER_HOOKED)
		return profile->reason;
	/* No nvidia-uvm means no managed memory; one that is not hooked gives it away unseen. */
	if (uvm->state != UMACCT_DRIVER_ABSENT && uvm->state != UMACCT_DRIVER_HOOKED)
		return uvm->reason;
	for_each_hook(hook)
		if (hook->state == UMACCT_HOOK_FAILED &&
		    (hook->limits || (hook->wanted && hook->wanted())))
			return hook->reason;
	for_each_hook(hook)
		if (hook->state == UMACCT_HOOK_ARMED && hook->probe.replacement &&
		    umacct_probe_needs_kprobes(&hook->probe))
			/* The state of one applies to all. */
			return umacct_probe_selftest() ? NULL :
			       "kprobes are disabled on this machine (debugfs kprobes/enabled)";
	return NULL;
}

static int module_of(const struct module *mod)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(module_names); i++)
		if (!strcmp(mod->name, module_names[i]))
			return i;
	return -1;
}

static int module_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct module *mod = data;
	int module = module_of(mod);

	if (module < 0)
		return NOTIFY_DONE;
	mutex_lock(&driver_mutex);
	if (leaving) {
		/* Nothing is hooked: a driver that goes now has no task in it that is here. */
	} else if (action == MODULE_STATE_COMING &&
		   umacct_driver_profiles[module].state == UMACCT_DRIVER_ABSENT) {
		attach(module, mod);
		/* Its initialisation runs in this task. */
		WRITE_ONCE(umacct_driver_profiles[module].loader, current);
	} else if (action == MODULE_STATE_LIVE) {
		/* It came while umacct did, which neither was told of nor found it. */
		if (umacct_driver_profiles[module].state == UMACCT_DRIVER_ABSENT)
			attach(module, mod);
		WRITE_ONCE(umacct_driver_profiles[module].loader, NULL);
		WRITE_ONCE(umacct_driver_profiles[module].live, true);
	} else if (action == MODULE_STATE_GOING) {
		WRITE_ONCE(umacct_driver_profiles[module].loader, NULL);
		detach(module);
	}
	mutex_unlock(&driver_mutex);
	return NOTIFY_DONE;
}

static struct notifier_block module_nb = {
	.notifier_call = module_notify,
};

/*
 * Attaches to a driver that was there before us. find_module() isn't exported;
 * the kset that our own kobject is in holds the others' too. The reference on
 * the kobject keeps the module's structure from being freed.
 */
static void attach_loaded(enum hook_module module)
{
	struct kobject *kobj;
	struct module *mod;

	kobj = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, module_names[module]);
	if (!kobj)
		return;
	mod = container_of(kobj, struct module_kobject, kobj)->mod;
	mutex_lock(&driver_mutex);
	if (mod && !leaving && READ_ONCE(mod->state) != MODULE_STATE_GOING &&
	    READ_ONCE(mod->state) != MODULE_STATE_UNFORMED &&
	    umacct_driver_profiles[module].state == UMACCT_DRIVER_ABSENT)
		attach(module, mod);
	mutex_unlock(&driver_mutex);
	kobject_put(kobj);
}

/* A required hook was missing for a reason that may be over: another's direct call is gone. */
static void retry(enum hook_module module)
{
	bool may_go = false;
	struct hook *hook;

	mutex_lock(&driver_mutex);
	umacct_hook_lock();
	if (umacct_driver_profiles[module].state == UMACCT_DRIVER_BROKEN &&
	    umacct_driver_profiles[module].live && !leaving)
		for_each_hook(hook)
			may_go |= hook->module == module && hook->required && hook->retriable &&
				  hook->state == UMACCT_HOOK_FAILED;
	if (may_go)
		forget(module);
	umacct_hook_unlock();
	mutex_unlock(&driver_mutex);
	if (may_go)
		attach_loaded(module);
}

static void driver_rearm_fn(struct work_struct *work)
{
	umacct_hook_lock();
	arm_wanted();
	disarm_unwanted();
	umacct_hook_unlock();
	retry(HOOK_NVIDIA);
	retry(HOOK_UVM);
}

/* Frees the counts of the hooks, when there are no requests for the status any more. */
void umacct_drivers_release(void)
{
	struct hook *hook;

	for_each_hook(hook)
		umacct_probe_destroy(&hook->probe);
}

/* Makes rearming possible, before there can be a request. */
void umacct_drivers_prepare(void)
{
	INIT_WORK(&umacct_hook_work, driver_rearm_fn);
	umacct_metadata_init();
}

/*
 * Hooks the drivers that are loaded and follows those to come. Returns 0 or an error. A driver that
 * can't be hooked is not an error: the status says so.
 */
int umacct_drivers_init(void)
{
	int err;

	umacct_hook_lock();
	umacct_charge_init();
	umacct_way_out_init();
	umacct_hook_unlock();
	err = register_module_notifier(&module_nb);
	if (err)
		return err;
	umacct_hook_lock();
	umacct_driver_profiles[HOOK_KERNEL].state = UMACCT_DRIVER_HOOKED;
	arm(HOOK_KERNEL);
	umacct_hook_unlock();
	attach_loaded(HOOK_NVIDIA);
	attach_loaded(HOOK_UVM);
	umacct_removal_follow(&umacct_hook_work);
	return 0;
}

/* Unhooks everything. On return no task is inside any replacement. */
void umacct_drivers_exit(void)
{
	unsigned int module;

	mutex_lock(&driver_mutex);
	leaving = true;
	umacct_hook_lock();
	for (module = HOOK_MODULES; module--; )
		disarm(module);
	umacct_pools_detach();
	umacct_hook_unlock();
	mutex_unlock(&driver_mutex);
	/* No driver has to wait for tasks that take their time, to come or to go. */
	unregister_module_notifier(&module_nb);
	umacct_probe_wait();
	for (module = 0; module < HOOK_MODULES; module++)
		drop_records(module, true);
	umacct_hook_lock();
	for (module = 0; module < HOOK_MODULES; module++)
		forget(module);
	umacct_hook_unlock();
	umacct_removal_follow(NULL);
	/* A request may still queue it; there is nothing left to arm. */
	cancel_work_sync(&umacct_hook_work);
	umacct_way_out_exit();
	umacct_probe_wait();
}
