// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * untilfrozen KIB FILE: waits until less than so much memory is available, but for free pages
 * of CMA areas, and from then until a cgroup is frozen, by FILE, its cgroup.events.
 * Prints the milliseconds in between; fails after 20 seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* The number behind KEY, or 0. */
static long long number_in(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[256];
	long long number = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, strlen(key)))
			number = atoll(line + strlen(key));
	}
	if (file)
		fclose(file);
	return number;
}

int main(int argc, char **argv)
{
	const struct timespec interval = { .tv_nsec = 1000000 };
	const double start = now_ms();
	double shortage = 0;
	long long floor;

	if (argc != 3)
		return 2;
	floor = atoll(argv[1]);
	while (now_ms() < start + 20000) {
		if (!shortage && number_in("/proc/meminfo", "MemAvailable:") -
				 number_in("/proc/meminfo", "CmaFree:") < floor)
			shortage = now_ms();
		if (shortage && number_in(argv[2], "frozen ")) {
			printf("%.0f\n", now_ms() - shortage);
			return 0;
		}
		nanosleep(&interval, NULL);
	}
	return 1;
}
