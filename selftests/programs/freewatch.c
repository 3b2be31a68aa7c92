// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * freewatch FLOOR: looks at the machine's free memory every few milliseconds until it is
 * ended (SIGTERM). Then, in one line: how little was free, how long it was under
 * FLOOR bytes without a break, and how long it did not look itself.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <time.h>

static volatile sig_atomic_t ends;

static void end(int signal)
{
	(void)signal;
	ends = 1;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	const struct timespec interval = { .tv_nsec = 2000000 };
	unsigned long long floor = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	unsigned long long least = ~0ull, samples = 0;
	double last = now_ms(), under = 0, longest = 0, gap = 0;

	signal(SIGTERM, end);
	while (!ends) {
		struct sysinfo info;
		unsigned long long free;
		double now;

		if (sysinfo(&info))
			return 1;
		free = (unsigned long long)info.freeram * info.mem_unit;
		now = now_ms();
		samples++;
		if (free < least)
			least = free;
		if (now - last > gap)
			gap = now - last;
		/* Milliseconds since the last look that found more. */
		under = free < floor ? under + now - last : 0;
		if (under > longest)
			longest = under;
		last = now;
		nanosleep(&interval, NULL);
	}
	printf("samples=%llu least=%llu under_ms=%.0f gap_ms=%.0f\n", samples, least, longest, gap);
	return 0;
}
