// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drivers that are hooked, through load and unload: which hooks are armed when.
 *
 * A driver comes or goes under driver_mutex, with all that has to be waited for. States and
 * profiles change under hook_lock() besides, where nobody is waited for: who asks for the
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
#include "hooks/throttle.h"
#include "hooks/va_space.h"
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

	if (driver_profiles[module].state != UMACCT_DRIVER_HOOKED)
		return;
	for_each_hook(hook) {
		if (hook->module != module || !hook->wanted || !hook_applies(hook))
			continue;
		if (hook->wanted()) {
			if (hook->state != UMACCT_HOOK_ARMED)
				hook_arm(hook);
		} else if (hook->state == UMACCT_HOOK_ARMED) {
			hook_disarm(hook, UMACCT_HOOK_OFF);
		} else if (hook->state != UMACCT_HOOK_OFF) {
			hook_leave_off(hook);
		}
	}
}

/*
 * Backwards: allocations go unseen before the frees of what was seen do. Nothing is armed
 * again.
 */
static void disarm(enum hook_module module)
{
	struct hook *hook;

	driver_profiles[module].state = UMACCT_DRIVER_ABSENT;
	for_each_hook_reverse(hook)
		if (hook->module == module)
			hook_disarm(hook, UMACCT_HOOK_IDLE);
}

/*
 * What was recorded of a driver is not seen going any more.
 *
 * Context: after disarm() and probe_drain_begin(); hook_lock() not held.
 */
static void drop_records(enum hook_module module)
{
	struct hook *hook;
	u64 dropped;

	for_each_hook(hook)
		if (hook->module == module)
			probe_drain(&hook->probe);
	if (module == HOOK_KERNEL)
		return;
	if (module == HOOK_UVM)
		va_space_forget();
	dropped = ledger_drop(module == HOOK_UVM);
	if (dropped)
		pr_info("%s is no longer followed: %llu allocations forgotten\n",
			module_names[module], dropped);
}

/* Context: under hook_lock(), after drop_records(). */
static void forget(enum hook_module module)
{
	if (module == HOOK_NVIDIA)
		pools_detach();
	memset(&driver_profiles[module], 0, sizeof(driver_profiles[module]));
}

static void detach(enum hook_module module)
{
	lockdep_assert_held(&driver_mutex);
	hook_lock();
	disarm(module);
	hook_unlock();
	probe_drain_begin();
	drop_records(module);
	hook_lock();
	forget(module);
	hook_unlock();
}

static void set_symbol(struct hook *hook, const char *symbol)
{
	hook->probe.symbol = symbol;
	hook->symbol_size = strlen(symbol) + 1;
}

/* Return: false if a required hook can't be armed; what is armed stays so. */
static bool arm(enum hook_module module)
{
	struct driver_profile *profile = &driver_profiles[module];
	struct hook *hook;

	for_each_hook(hook) {
		if (hook->module != module || !hook_applies(hook))
			continue;
		if (hook->symbol)
			set_symbol(hook, hook->symbol(profile));
		if (hook->wanted && !hook->wanted()) {
			hook_leave_off(hook);
			continue;
		}
		hook_arm(hook);
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
		if (hook->module == module && hook->required && hook_applies(hook))
			return true;
	return false;
}

/* Return: false if it is not to be followed though some of its hooks were armed. */
static bool try_attach(enum hook_module module, struct module *mod)
{
	struct driver_profile *profile = &driver_profiles[module];
	bool known = driver_identify(profile, mod);
	struct hook *hook;

	if (module == HOOK_NVIDIA)
		pools_attach(known ? mod : NULL, profile->pools_expected);
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
			hook_disarm(hook, UMACCT_HOOK_OFF);
	return false;
}

static void attach(enum hook_module module, struct module *mod)
{
	bool done;

	lockdep_assert_held(&driver_mutex);
	hook_lock();
	done = try_attach(module, mod);
	hook_unlock();
	if (done)
		return;
	probe_drain_begin();
	drop_records(module);
}

/**
 * driver_rearm() - a feature was switched on or off
 *
 * Context: may sleep; hook_lock() not held.
 */
void driver_rearm(void)
{
	hook_lock();
	update_optional(HOOK_NVIDIA);
	update_optional(HOOK_KERNEL);
	hook_unlock();
}

static void driver_rearm_fn(struct work_struct *work)
{
	driver_rearm();
}

/**
 * driver_unenforced() - why isn't everything enforced that is asked for?
 *
 * What is asked for may change from one call to the next.
 *
 * Context: under hook_lock(), as long as the answer is used.
 * Return: a sentence, or NULL if it is.
 */
const char *driver_unenforced(void)
{
	const struct driver_profile *profile = driver_profile(HOOK_NVIDIA);
	struct hook *hook;

	if (profile->state == UMACCT_DRIVER_ABSENT)
		return "the driver is not loaded: this holds from the moment it is";
	if (profile->state != UMACCT_DRIVER_HOOKED)
		return profile->reason;
	for_each_hook(hook)
		if (hook->state == UMACCT_HOOK_FAILED &&
		    (hook->limits || (hook->wanted && hook->wanted())))
			return hook->reason;
	for_each_hook(hook)
		if (hook->state == UMACCT_HOOK_ARMED && hook->probe.replacement &&
		    !probe_fires(&hook->probe))
			return "kprobes are switched off for the whole machine (debugfs kprobes/enabled)";
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
	    driver_profiles[module].state == UMACCT_DRIVER_ABSENT)
		attach(module, mod);
	else if (action == MODULE_STATE_LIVE)
		WRITE_ONCE(driver_profiles[module].live, true);
	else if (action == MODULE_STATE_GOING)
		detach(module);
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
	    driver_profiles[module].state == UMACCT_DRIVER_ABSENT) {
		attach(module, mod);
		if (READ_ONCE(mod->state) == MODULE_STATE_LIVE)
			WRITE_ONCE(driver_profiles[module].live, true);
	}
	mutex_unlock(&driver_mutex);
	kobject_put(kobj);
}

/**
 * drivers_release() - undo drivers_prepare()
 *
 * Context: may sleep; nobody asks for the status any more.
 */
void drivers_release(void)
{
	struct hook *hook;

	for_each_hook(hook)
		probe_destroy(&hook->probe);
}

/**
 * drivers_prepare() - make ready what the status tells of
 *
 * Context: may sleep; nobody asks for the status yet.
 * Return: 0 or -ENOMEM.
 */
int drivers_prepare(void)
{
	struct hook *hook;
	int err;

	for_each_hook(hook) {
		hook->name_size = strlen(hook->name) + 1;
		set_symbol(hook, hook->probe.symbol);
		err = probe_init(&hook->probe);
		if (err) {
			drivers_release();
			return err;
		}
	}
	return 0;
}

/**
 * drivers_init() - hook the drivers that are loaded and follow those to come
 *
 * Context: module initialisation, after drivers_prepare().
 * Return: 0 or an error. A driver that can't be hooked is not an error: status
 *	says so.
 */
int drivers_init(void)
{
	int err;

	INIT_WORK(&hook_work, driver_rearm_fn);
	metadata_init();
	throttle_init();
	err = register_module_notifier(&module_nb);
	if (err)
		return err;
	hook_lock();
	driver_profiles[HOOK_KERNEL].state = UMACCT_DRIVER_HOOKED;
	arm(HOOK_KERNEL);
	hook_unlock();
	attach_loaded(HOOK_NVIDIA);
	attach_loaded(HOOK_UVM);
	removal_follow(&hook_work);
	return 0;
}

/**
 * drivers_exit() - unhook everything
 *
 * On return no task is inside any replacement.
 *
 * Context: module exit.
 */
void drivers_exit(void)
{
	unsigned int module;

	mutex_lock(&driver_mutex);
	leaving = true;
	hook_lock();
	for (module = HOOK_MODULES; module--; )
		disarm(module);
	hook_unlock();
	probe_drain_begin();
	for (module = 0; module < HOOK_MODULES; module++)
		drop_records(module);
	hook_lock();
	for (module = 0; module < HOOK_MODULES; module++)
		forget(module);
	hook_unlock();
	mutex_unlock(&driver_mutex);
	/* Only now: until then somebody may look into a driver that goes. */
	unregister_module_notifier(&module_nb);
	removal_follow(NULL);
	/* Nobody is left to queue it, and there is nothing left to arm. */
	cancel_work_sync(&hook_work);
	throttle_exit();
	probe_drain_end();
}
