// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matches a driver with those of driver_versions.h. Before there is a row for one,
 * an administrator can say which known one it is like.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "hooks/profile.h"

static const struct series known_series[] = KNOWN_SERIES;

static unsigned int like_series;
module_param(like_series, uint, 0444);
MODULE_PARM_DESC(like_series, "treat every driver as one of this series (e.g. 580)");

struct driver_profile umacct_driver_profiles[HOOK_MODULES];

static unsigned int last_series(void)
{
	return known_series[ARRAY_SIZE(known_series) - 1].last;
}

static const struct series *find_series(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known_series); i++)
		if (number >= known_series[i].first && number <= known_series[i].last)
			return &known_series[i];
	return NULL;
}

/*
 * Finds out what is known of a driver. Returns false if its version isn't known, and no parameter
 * says which it is like; @profile says so. Under umacct_hook_lock().
 */
bool umacct_driver_identify(struct driver_profile *profile, const struct module *mod)
{
	const struct series *series = NULL, *like = NULL;
	unsigned int number;

	memset(profile, 0, sizeof(*profile));
	strscpy(profile->version, mod->version ?: "unknown", sizeof(profile->version));
	if (sscanf(profile->version, "%u.", &number) == 1)
		series = find_series(number);
	if (like_series)
		like = find_series(like_series);
	if (like && series && like->layouts != series->layouts) {
		/* Its arguments are known to differ: hooking it would crash it. */
		snprintf(profile->reason, sizeof(profile->reason),
			 "%s %s is known, and not like series %u: like_series is not followed",
			 mod->name, profile->version, like_series);
	} else if (like_series) {
		series = like;
		snprintf(profile->reason, sizeof(profile->reason),
			 "%s %s is treated as series %u because of like_series; figures may be wrong",
			 mod->name, profile->version, like_series);
	}
	if (!series) {
		profile->state = UMACCT_DRIVER_UNKNOWN;
		snprintf(profile->reason, sizeof(profile->reason),
			 "%s %s is not a version that this module knows; nothing is accounted; like_series=%u would follow it, and may crash the machine",
			 mod->name, profile->version, last_series());
		return false;
	}
	profile->layouts = series->layouts;
	/* like_series does not tell the sizes of its metadata. */
	profile->page_pools = series->page_pools || series == like;
	profile->pools_expected = series->page_pools;
	profile->sizes = series->sizes;
	return true;
}
