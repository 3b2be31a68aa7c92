// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drivers we hook: which one is loaded, what is known of it, and which hooks
 * are armed. Follows them through load and unload.
 *
 * Everything here is serialised by one mutex. The module notifier takes it, so
 * a driver can't go while its hooks are being armed.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>

#include "compat.h"
#include "hooks/driver.h"
#include "hooks/hooks.h"
#include "ledger/ledger.h"

/*
 * What is known of each driver series; the only place that names versions.
 * Facts come from the source of the series' releases.
 */
static const struct series {
	unsigned int first, last;
	enum alloc_layout alloc;
	enum chunk_layout chunk;
	bool page_pools;
	bool native_charge;
} known_series[] = {
	{ 515, 525, ALLOC_8,  CHUNK_UNKNOWN, false, false },
	{ 530, 535, ALLOC_9,  CHUNK_3,       false, false },
	{ 545, 580, ALLOC_10, CHUNK_4,       false, false },
	{ 590, 610, ALLOC_10, CHUNK_4,       true,  false },
	{ 615, 615, ALLOC_10, CHUNK_4,       true,  true  },
};

/*
 * Frees before allocations: what is recorded is sure to be seen going.
 */
struct hook *const hooks[] = {
	&hook_init_adapter,
	&hook_free_system_pages,
	&hook_free_contig_pages,
	&hook_gfp,
	&hook_alloc_pages_8,
	&hook_alloc_pages_9,
	&hook_alloc_pages_10,
	&hook_chunk_free,
	&hook_chunk_alloc_3,
	&hook_chunk_alloc_4,
	&hook_ioctl,
	&hook_frontend_ioctl,
	&hook_si_meminfo,
	&hook_si_mem_available,
	&hook_si_meminfo_node,
	NULL
};

/* By enum hook_owner. The kernel itself is a driver that is always there. */
static const char *const module_names[] = {
	[HOOK_NVIDIA] = "nvidia",
	[HOOK_UVM] = "nvidia_uvm",
	[HOOK_KERNEL] = "the kernel",
};

static DEFINE_MUTEX(driver_mutex);
static struct driver_profile profiles[ARRAY_SIZE(module_names)];

#define for_each_hook(at)	for ((at) = hooks; *(at); (at)++)

/**
 * driver_profile() - what is known of a driver
 * @owner: whose
 *
 * Context: any; the flags and layouts change only while no hook is armed, the
 *	texts under driver_lock().
 */
const struct driver_profile *driver_profile(enum hook_owner owner)
{
	return &profiles[owner];
}

/**
 * driver_lock() - keep profiles and hooks as they are
 *
 * Context: may sleep.
 */
void driver_lock(void)
{
	mutex_lock(&driver_mutex);
}

/**
 * driver_unlock() - undo driver_lock()
 */
void driver_unlock(void)
{
	mutex_unlock(&driver_mutex);
}

static bool identify(struct driver_profile *profile, const struct module *mod)
{
	unsigned int i;

	memset(profile, 0, sizeof(*profile));
	strscpy(profile->version, mod->version ?: "unknown", sizeof(profile->version));
	if (sscanf(profile->version, "%u.", &profile->series) == 1) {
		for (i = 0; i < ARRAY_SIZE(known_series); i++) {
			const struct series *s = &known_series[i];

			if (profile->series < s->first || profile->series > s->last)
				continue;
			profile->alloc = s->alloc;
			profile->chunk = s->chunk;
			profile->page_pools = s->page_pools;
			profile->native_charge = s->native_charge;
			return true;
		}
	}
	profile->state = UMACCT_DRIVER_UNKNOWN;
	snprintf(profile->reason, sizeof(profile->reason),
		 "%s %s is not a version that this module knows; nothing is accounted",
		 mod->name, profile->version);
	pr_warn("%s\n", profile->reason);
	return false;
}

static const char *error_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "the driver has no such symbol";
	case -EINVAL:
		return "the kernel does not allow a probe there";
	case -EBUSY:
		return "the function is held by a live patch or another redirection";
	case -ENOMEM:
		return "out of memory";
	case -EOPNOTSUPP:
		return "this kernel has kprobes switched off";
	}
	return NULL;
}

static void hook_arm(struct hook *hook)
{
	const char *text;
	int err;

	err = probe_arm(&hook->probe);
	if (!err) {
		hook->state = UMACCT_HOOK_ARMED;
		return;
	}
	hook->state = UMACCT_HOOK_FAILED;
	text = error_text(err);
	if (text)
		strscpy(hook->reason, text, sizeof(hook->reason));
	else
		snprintf(hook->reason, sizeof(hook->reason), "error %d", err);
	pr_warn("no hook \"%s\" at %s: %s\n", hook->name, hook->probe.symbol, hook->reason);
}

static void hook_disarm(struct hook *hook, enum umacct_hook_state state)
{
	probe_disarm(&hook->probe);
	hook->state = state;
	hook->reason[0] = '\0';
}

/**
 * driver_hook_applies() - is this hook one for the loaded driver?
 * @hook: the hook
 *
 * Context: under driver_lock().
 * Return: also false while a driver is absent whose version decides.
 */
bool driver_hook_applies(const struct hook *hook)
{
	return !hook->applies || (profiles[hook->owner].state != UMACCT_DRIVER_ABSENT &&
				  hook->applies(&profiles[hook->owner]));
}

/* Arms what is needed and is not armed, disarms what is no longer needed. */
static void update_optional(enum hook_owner owner)
{
	struct hook *const *at;

	for_each_hook(at) {
		struct hook *hook = *at;

		if (hook->owner != owner || !hook->wanted || !driver_hook_applies(hook) ||
		    profiles[owner].state != UMACCT_DRIVER_HOOKED)
			continue;
		if (hook->wanted()) {
			if (hook->state != UMACCT_HOOK_ARMED)
				hook_arm(hook);
		} else if (hook->state != UMACCT_HOOK_OFF) {
			hook_disarm(hook, UMACCT_HOOK_OFF);
		}
	}
}

static void disarm(enum hook_owner owner)
{
	struct hook *const *at;

	for_each_hook(at)
		if ((*at)->owner == owner)
			hook_disarm(*at, UMACCT_HOOK_IDLE);
}

/* Context: after disarm() and probe_drain_begin(). */
static void forget(enum hook_owner owner)
{
	struct driver_profile *profile = &profiles[owner];
	struct hook *const *at;
	u64 dropped;

	for_each_hook(at)
		if ((*at)->owner == owner)
			probe_drain(&(*at)->probe);
	if (profile->state == UMACCT_DRIVER_HOOKED && owner != HOOK_KERNEL) {
		dropped = ledger_drop(owner == HOOK_UVM);
		if (dropped)
			pr_info("%s is no longer followed: %llu allocations forgotten\n",
				module_names[owner], dropped);
	}
	memset(profile, 0, sizeof(*profile));
}

static void detach(enum hook_owner owner)
{
	disarm(owner);
	probe_drain_begin();
	forget(owner);
}

static void attach(enum hook_owner owner, const struct module *mod)
{
	struct driver_profile *profile = &profiles[owner];
	struct hook *const *at;

	if (!identify(profile, mod))
		return;
	profile->state = UMACCT_DRIVER_HOOKED;
	for_each_hook(at) {
		struct hook *hook = *at;

		if (hook->owner != owner || !driver_hook_applies(hook))
			continue;
		if (hook->wanted && !hook->wanted()) {
			hook->state = UMACCT_HOOK_OFF;
			continue;
		}
		hook_arm(hook);
		if (hook->state == UMACCT_HOOK_FAILED && hook->required) {
			profile->state = UMACCT_DRIVER_BROKEN;
			snprintf(profile->reason, sizeof(profile->reason),
				 "no hook at %s: %s; nothing is accounted",
				 hook->probe.symbol, hook->reason);
			break;
		}
	}
	if (profile->state == UMACCT_DRIVER_BROKEN) {
		for_each_hook(at)
			if ((*at)->owner == owner && (*at)->state == UMACCT_HOOK_ARMED)
				hook_disarm(*at, UMACCT_HOOK_OFF);
		pr_warn("%s\n", profile->reason);
		return;
	}
	pr_info("following %s %s\n", mod->name, profile->version);
}

/**
 * driver_rearm() - a feature was switched on or off
 *
 * Context: may sleep; driver_lock() not held.
 */
void driver_rearm(void)
{
	driver_lock();
	update_optional(HOOK_NVIDIA);
	update_optional(HOOK_KERNEL);
	driver_unlock();
}

/**
 * driver_hook_possible() - could a hook that is off be armed?
 * @hook: a hook that serves an optional feature
 *
 * Context: may sleep; under driver_lock().
 * Return: true also while the driver is not loaded: nothing speaks against it.
 */
bool driver_hook_possible(const struct hook *hook)
{
	if (hook->state != UMACCT_HOOK_OFF)
		return hook->state != UMACCT_HOOK_FAILED;
	return probe_resolve(hook->probe.symbol);
}

static int owner_of(const struct module *mod)
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
	int owner = owner_of(mod);

	if (owner < 0)
		return NOTIFY_DONE;
	driver_lock();
	if (action == MODULE_STATE_COMING && profiles[owner].state == UMACCT_DRIVER_ABSENT)
		attach(owner, mod);
	else if (action == MODULE_STATE_GOING)
		detach(owner);
	driver_unlock();
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
static void attach_loaded(enum hook_owner owner)
{
	struct kobject *kobj;
	struct module *mod;

	kobj = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, module_names[owner]);
	if (!kobj)
		return;
	mod = container_of(kobj, struct module_kobject, kobj)->mod;
	driver_lock();
	if (mod && READ_ONCE(mod->state) != MODULE_STATE_GOING &&
	    READ_ONCE(mod->state) != MODULE_STATE_UNFORMED &&
	    profiles[owner].state == UMACCT_DRIVER_ABSENT)
		attach(owner, mod);
	driver_unlock();
	kobject_put(kobj);
}

static void destroy_probes(void)
{
	struct hook *const *at;

	for_each_hook(at)
		probe_destroy(&(*at)->probe);
}

/**
 * drivers_init() - hook the drivers that are loaded and follow those to come
 *
 * Context: module initialisation.
 * Return: 0 or an error. A driver that can't be hooked is not an error: status
 *	says so.
 */
int drivers_init(void)
{
	struct hook *const *at;
	int err;

	for_each_hook(at) {
		err = probe_init(&(*at)->probe);
		if (err)
			goto err;
	}
	err = register_module_notifier(&module_nb);
	if (err)
		goto err;
	profiles[HOOK_KERNEL].state = UMACCT_DRIVER_HOOKED;
	driver_rearm();
	attach_loaded(HOOK_NVIDIA);
	attach_loaded(HOOK_UVM);
	return 0;
err:
	destroy_probes();
	return err;
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
	unsigned int owner;

	unregister_module_notifier(&module_nb);
	driver_lock();
	for (owner = 0; owner < ARRAY_SIZE(module_names); owner++)
		disarm(owner);
	probe_drain_begin();
	for (owner = 0; owner < ARRAY_SIZE(module_names); owner++)
		forget(owner);
	driver_unlock();
	probe_drain_end();
	destroy_probes();
}
