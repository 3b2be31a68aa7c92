// SPDX-License-Identifier: GPL-2.0-only
/*
 * The versions of the driver that are known. This is the only place that names
 * them: a new one is a row in the table. Before there is one, an administrator can say
 * which known one a driver is like.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "hooks/versions.h"

/*
 * As selftests/sizes measures them: with 535.261 on x86_64, with 550.163 on x86_64 and arm64,
 * which differ by 3 % at most, and with 580.142 on x86_64. 590 and later are taken to be like
 * 580. A page's is by the source: an entry of 32 bytes and its address, from 580 on an entry of
 * 16 bytes. Measured are 8 more up to 550: an array that is followed by size where it is large.
 * A client's is with the open file that it takes, and 5 % more for what the slab allocator loses
 * between objects.
 */
#define SIZES_535						\
	{ .page = 40, .object = 3600, .client = 6100, .va_space = 33300,	\
	  .external = 1940, .managed = 2240, .block = 1090 }
#define SIZES_550						\
	{ .page = 40, .object = 3600, .client = 6100, .va_space = 22900,	\
	  .external = 16420, .managed = 16760, .block = 3220 }
#define SIZES_580						\
	{ .page = 16, .object = 2760, .client = 4200, .va_space = 22900,	\
	  .external = 16400, .managed = 800, .block = 3270 }

/* From the source of the series' releases. */
static const struct series {
	unsigned int first, last;
	unsigned int layouts;
	bool page_pools;
	struct driver_sizes sizes;
} known_series[] = {
	{ 515, 525, LAYOUT_ALLOC_8,                   false, SIZES_535 },
	{ 530, 535, LAYOUT_ALLOC_9 | LAYOUT_CHUNK_3,  false, SIZES_535 },
	{ 545, 575, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, false, SIZES_550 },
	{ 580, 580, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, false, SIZES_580 },
	{ 590, 615, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, true,  SIZES_580 },
};

static unsigned int like_series;
module_param(like_series, uint, 0444);
MODULE_PARM_DESC(like_series, "take a driver for one of this series (e.g. 580), whatever it says");

struct driver_profile driver_profiles[HOOK_MODULES];

static const struct series *find_series(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known_series); i++)
		if (number >= known_series[i].first && number <= known_series[i].last)
			return &known_series[i];
	return NULL;
}

/**
 * driver_identify() - find out what is known of a driver
 * @profile: filled in
 * @mod: the driver's module
 *
 * Context: under hook_lock().
 * Return: false if its version isn't known, and nobody says which it is like; @profile
 *	says so.
 */
bool driver_identify(struct driver_profile *profile, const struct module *mod)
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
		/* What it is called with is known to be otherwise: following would crash it. */
		snprintf(profile->reason, sizeof(profile->reason),
			 "%s %s is known, and not like series %u: like_series is not followed",
			 mod->name, profile->version, like_series);
	} else if (like_series) {
		series = like;
		snprintf(profile->reason, sizeof(profile->reason),
			 "%s %s is taken for one of series %u, as like_series says: what is accounted may be wrong",
			 mod->name, profile->version, like_series);
	}
	if (!series) {
		profile->state = UMACCT_DRIVER_UNKNOWN;
		snprintf(profile->reason, sizeof(profile->reason),
			 "%s %s is not a version that this module knows; nothing is accounted",
			 mod->name, profile->version);
		return false;
	}
	profile->layouts = series->layouts;
	/* What it is said to be like says nothing of what it keeps. */
	profile->page_pools = series->page_pools || series == like;
	profile->pools_expected = series->page_pools;
	profile->sizes = series->sizes;
	return true;
}
