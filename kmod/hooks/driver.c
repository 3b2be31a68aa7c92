// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drivers that are hooked, through load and unload: which hooks are armed when.
 *
 * A driver comes or goes under driver_mutex, with all that has to be waited for. States and
 * profiles change under umacct_hook_lock() besides, where nobody is waited for: who asks for the
 * status gets it, however long a task stays in the driver. The notifier of modules takes
 * both, so a driver can't go while its hooks are being armed.
 */
#include <linux/kobject.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>

#include "hooks/driver.h"
#include "hooks/metadata.h"
#include "hooks/table.h"
#include "hooks/va_space.h"
#include "hooks/way_out.h"
#include "ledger/ledger.h"
#include "ledger/removal.h"
#include "pools.h"

static DEFINE_MUTEX(driver_mutex);

/* No driver is hooked any more; guarded by driver_mutex. */
static bool leaving;

/* By enum hook_module. */
static const char *const module_names[HOOK_MODULES] = {
	[HOOK_NVIDIA] = "nvidia",
	[HOOK_UVM] = "nvidia_uvm",
	[HOOK_KERNEL] = "the kernel",
};

/* Arms what is needed and is not armed, disarms what is no longer needed. */
static void update_optional(enum hook_module module)
{
	struct hook *hook;

	if (umacct_driver_profiles[module].state != UMACCT_DRIVER_HOOKED)
		return;
	for_each_hook(hook) {
		if (hook->module != module || !hook->wanted || !umacct_hook_applies(hook))
			continue;
		if (hook->wanted()) {
			if (hook->state != UMACCT_HOOK_ARMED)
				umacct_hook_arm(hook);
		} else if (hook->state == UMACCT_HOOK_ARMED) {
			umacct_hook_disarm(hook, UMACCT_HOOK_OFF);
		} else if (hook->state != UMACCT_HOOK_OFF) {
			umacct_hook_leave_off(hook);
		}
	}
}

/*
 * In reverse order: hooks of allocations are disarmed before those of frees, so that the free of
 * every recorded allocation is seen. Nothing is armed again.
 */
static void disarm(enum hook_module module)
{
	struct hook *hook;

	umacct_driver_profiles[module].state = UMACCT_DRIVER_ABSENT;
	for_each_hook_reverse(hook)
		if (hook->module == module)
			umacct_hook_disarm(hook, UMACCT_HOOK_IDLE);
}

/*
 * What was recorded of a driver is not seen going any more.
 *
 * Context: after disarm() and umacct_probe_drain_begin(); umacct_hook_lock() not held.
 */
static void drop_records(enum hook_module module)
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
	dropped = umacct_ledger_drop(module == HOOK_UVM);
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
	umacct_probe_drain_begin();
	drop_records(module);
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
	umacct_probe_drain_begin();
	drop_records(module);
}

/**
 * umacct_driver_rearm() - a feature was switched on or off
 *
 * Context: may sleep; umacct_hook_lock() not held.
 */
void umacct_driver_rearm(void)
{
	umacct_hook_lock();
	update_optional(HOOK_NVIDIA);
	update_optional(HOOK_KERNEL);
	umacct_hook_unlock();
}

static void driver_rearm_fn(struct work_struct *work)
{
	umacct_driver_rearm();
}

/**
 * umacct_driver_unenforced() - why isn't everything enforced that is asked for?
 *
 * What is asked for may change from one call to the next.
 *
 * Context: under umacct_hook_lock(), as long as the answer is used.
 * Return: a sentence, or NULL if it is.
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
	/* Without nvidia-uvm nobody has managed memory; one that is not followed gives it away. */
	if (uvm->state != UMACCT_DRIVER_ABSENT && uvm->state != UMACCT_DRIVER_HOOKED)
		return uvm->reason;
	for_each_hook(hook)
		if (hook->state == UMACCT_HOOK_FAILED &&
		    (hook->limits || (hook->wanted && hook->wanted())))
			return hook->reason;
	for_each_hook(hook)
		if (hook->state == UMACCT_HOOK_ARMED && hook->probe.replacement &&
		    umacct_probe_needs_kprobes(&hook->probe))
			/* What holds for one of them holds for all. */
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
	if (action == MODULE_STATE_COMING && !leaving &&
	    umacct_driver_profiles[module].state == UMACCT_DRIVER_ABSENT) {
		attach(module, mod);
		/* Its initialisation runs in this task. */
		WRITE_ONCE(umacct_driver_profiles[module].loader, current);
	} else if (action == MODULE_STATE_LIVE) {
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
	if (mod && READ_ONCE(mod->state) != MODULE_STATE_GOING &&
	    READ_ONCE(mod->state) != MODULE_STATE_UNFORMED &&
	    umacct_driver_profiles[module].state == UMACCT_DRIVER_ABSENT) {
		attach(module, mod);
		if (READ_ONCE(mod->state) == MODULE_STATE_LIVE)
			WRITE_ONCE(umacct_driver_profiles[module].live, true);
	}
	mutex_unlock(&driver_mutex);
	kobject_put(kobj);
}

/**
 * umacct_drivers_release() - undo umacct_drivers_prepare()
 *
 * Context: may sleep; nobody asks for the status any more.
 */
void umacct_drivers_release(void)
{
	struct hook *hook;

	for_each_hook(hook)
		umacct_probe_destroy(&hook->probe);
}

/**
 * umacct_drivers_prepare() - make ready what the status tells of
 *
 * Context: may sleep; nobody asks for the status yet.
 * Return: 0 or -ENOMEM.
 */
int umacct_drivers_prepare(void)
{
	struct hook *hook;
	int err;

	for_each_hook(hook) {
		err = umacct_probe_init(&hook->probe);
		if (err) {
			umacct_drivers_release();
			return err;
		}
	}
	return 0;
}

/**
 * umacct_drivers_init() - hook the drivers that are loaded and follow those to come
 *
 * Context: module initialisation, after umacct_drivers_prepare().
 * Return: 0 or an error. A driver that can't be hooked is not an error: status
 *	says so.
 */
int umacct_drivers_init(void)
{
	int err;

	INIT_WORK(&umacct_hook_work, driver_rearm_fn);
	umacct_metadata_init();
	umacct_way_out_init();
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

/**
 * umacct_drivers_exit() - unhook everything
 *
 * On return no task is inside any replacement.
 *
 * Context: module exit.
 */
void umacct_drivers_exit(void)
{
	unsigned int module;

	mutex_lock(&driver_mutex);
	leaving = true;
	umacct_hook_lock();
	for (module = HOOK_MODULES; module--; )
		disarm(module);
	umacct_hook_unlock();
	umacct_probe_drain_begin();
	for (module = 0; module < HOOK_MODULES; module++)
		drop_records(module);
	umacct_hook_lock();
	for (module = 0; module < HOOK_MODULES; module++)
		forget(module);
	umacct_hook_unlock();
	mutex_unlock(&driver_mutex);
	/* Only now: until then somebody may look into a driver that goes. */
	unregister_module_notifier(&module_nb);
	umacct_removal_follow(NULL);
	/* Nobody is left to queue it, and there is nothing left to arm. */
	cancel_work_sync(&umacct_hook_work);
	umacct_way_out_exit();
	umacct_probe_drain_end();
}
