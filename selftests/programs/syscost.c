// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * syscost ROUNDS: what asking for the machine's memory takes, in nanoseconds a
 * call; the median of ROUNDS. Under QEMU's icount these are instructions.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

/* Calls that are timed together: a clock may tick in steps of 16 ns. */
#define BATCH	16

static int meminfo;

static int ask_sysinfo(void)
{
	struct sysinfo info;

	return sysinfo(&info);
}

static int ask_meminfo(void)
{
	char buffer[8192];

	return pread(meminfo, buffer, sizeof(buffer), 0) > 0 ? 0 : -1;
}

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	long long left = *(const long long *)a, right = *(const long long *)b;

	return (left > right) - (left < right);
}

static int measure(const char *name, int (*ask)(void), int rounds)
{
	long long *took = calloc(rounds, sizeof(*took));

	if (!took)
		return -1;
	for (int i = 0; i < rounds; i++) {
		long long start = now();

		for (int j = 0; j < BATCH; j++) {
			if (ask()) {
				perror(name);
				free(took);
				return -1;
			}
		}
		took[i] = now() - start;
	}
	qsort(took, rounds, sizeof(*took), compare);
	printf("%s %lld\n", name, took[rounds / 2] / BATCH);
	free(took);
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc == 2 ? atoi(argv[1]) : 0;

	meminfo = open("/proc/meminfo", O_RDONLY);
	if (rounds <= 0 || meminfo < 0) {
		fprintf(stderr, "usage: syscost ROUNDS\n");
		return 2;
	}
	return measure("sysinfo", ask_sysinfo, rounds) || measure("meminfo", ask_meminfo, rounds);
}
