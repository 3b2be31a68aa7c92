// SPDX-License-Identifier: GPL-2.0-only
/*
 * The versions of the driver that are known. This is the only place that names
 * them: a new one is a row in the table.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "hooks/versions.h"

#define IOCTL		"nvidia:nvidia_unlocked_ioctl"
#define FRONTEND_IOCTL	"nvidia:nvidia_frontend_unlocked_ioctl"

/* From the source of the series' releases. */
static const struct series {
	unsigned int first, last;
	unsigned int layouts;
	const char *ioctl;
	bool page_pools;
	bool native_charge;
} known_series[] = {
	{ 515, 525, LAYOUT_ALLOC_8,                   FRONTEND_IOCTL, false, false },
	{ 530, 535, LAYOUT_ALLOC_9 | LAYOUT_CHUNK_3,  FRONTEND_IOCTL, false, false },
	{ 545, 580, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, IOCTL,          false, false },
	{ 590, 610, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, IOCTL,          true,  false },
	{ 615, 615, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, IOCTL,          true,  true  },
};

struct driver_profile driver_profiles[HOOK_MODULES];

/**
 * driver_identify() - find out what is known of a driver
 * @profile: filled in
 * @mod: the driver's module
 *
 * Context: under hook_lock().
 * Return: false if its version isn't known; @profile says so.
 */
bool driver_identify(struct driver_profile *profile, const struct module *mod)
{
	unsigned int number, i;

	memset(profile, 0, sizeof(*profile));
	strscpy(profile->version, mod->version ?: "unknown", sizeof(profile->version));
	if (sscanf(profile->version, "%u.", &number) == 1) {
		for (i = 0; i < ARRAY_SIZE(known_series); i++) {
			const struct series *series = &known_series[i];

			if (number < series->first || number > series->last)
				continue;
			profile->layouts = series->layouts;
			profile->ioctl = series->ioctl;
			profile->page_pools = series->page_pools;
			profile->native_charge = series->native_charge;
			return true;
		}
	}
	profile->state = UMACCT_DRIVER_UNKNOWN;
	snprintf(profile->reason, sizeof(profile->reason),
		 "%s %s is not a version that this module knows; nothing is accounted",
		 mod->name, profile->version);
	return false;
}
