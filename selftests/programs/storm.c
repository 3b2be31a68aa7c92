// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * storm SEED SECONDS PAUSE WORKERS DIR...: many processes take memory from the NVIDIA
 * driver and let it go in every way that a program has, at random, each in one of the
 * cgroups DIR after the other. It keeps its own account of its memory by owner.
 *
 * Every PAUSE seconds they stand still, and what each cgroup's processes hold is printed:
 *
 *	held DIR BYTES
 *	pause
 *
 * It goes on when it reads a line. At the end all of them exit, and the last line is
 * "end" with the numbers of what was done.
 */
#include "rmclient.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORKERS	64
#define MAX_DIRS	32
#define MAX_OBJECTS	48
#define FIRST_HANDLE	0xcaf00000u
#define PAGE		4096u

enum phase { RUN, PAUSE, END };

/* State that all workers share. A worker writes to its own place only; when it is gone, so is what
 * it held, and who started it clears the place.
 */
struct place {
	pid_t pid;
	atomic_int keeper;		/* keeps the worker's client open after its death */
	atomic_bool kept;		/* and has nothing else of it any more */
	atomic_bool still;
	atomic_ullong held[MAX_DIRS];
};

struct shared {
	atomic_int phase;
	atomic_ullong allocations, refusals, maps, frees, moves, deaths, keepers, oddities;
	atomic_int odd_status;		/* the last one's */
	struct place places[MAX_WORKERS];
};

struct object {
	uint64_t size;			/* 0: free */
	uint64_t bytes;			/* memory that the driver takes for it */
	int dir;			/* account that it counts for */
	struct rm_mapping mapping;
};

static struct shared *shared;
static char **dirs;
static int nr_dirs;
static uint64_t random_state;

/* xorshift64* */
static uint32_t next_random(uint32_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)((random_state * 0x2545f4914f6cdd1dull) >> 33) % below;
}

static void nap(void)
{
	const struct timespec time = { .tv_nsec = 2000000 };

	nanosleep(&time, NULL);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static int enter_cgroup(int dir)
{
	char path[512];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dirs[dir]);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, "0", 1) == 1 ? 0 : -errno;
	close(fd);
	return ret;
}

/* --- a worker ---------------------------------------------------------------- */

struct worker {
	struct place *place;
	struct rm_client client;
	struct object objects[MAX_OBJECTS];
	int dir;
};

/* One block of the page allocator. */
static uint64_t bytes_of(uint64_t size)
{
	uint64_t bytes = PAGE;

	while (bytes < size)
		bytes *= 2;
	return bytes;
}

/* The answers but yes that a healthy driver gives here: "no memory" for pages that are refused,
 * "insufficient resources", or in some functions "invalid state", for a block of its heap.
 */
static bool is_no_memory(int status)
{
	return status == RM_ERR_NO_MEMORY || status == RM_ERR_INSUFFICIENT_RESOURCES ||
	       status == RM_ERR_INVALID_STATE || status == -ENOMEM;
}

static void note_odd(int status)
{
	shared->odd_status = status;
	atomic_fetch_add(&shared->oddities, 1);
}

static void take(struct worker *w, unsigned int i)
{
	struct object *object = &w->objects[i];
	uint64_t size = (uint64_t)PAGE * (1 + next_random(next_random(8) ? 16 : 300));
	int status = rm_alloc(&w->client, FIRST_HANDLE + i, size);

	if (is_no_memory(status))
		atomic_fetch_add(&shared->refusals, 1);
	else if (status)
		note_odd(status);
	if (status)
		return;
	*object = (struct object){
		.size = size, .bytes = bytes_of(size), .dir = w->dir, .mapping.fd = -1,
	};
	atomic_fetch_add(&w->place->held[w->dir], object->bytes);
	atomic_fetch_add(&shared->allocations, 1);
}

static void forget(struct worker *w, struct object *object)
{
	atomic_fetch_sub(&w->place->held[object->dir], object->bytes);
	object->size = 0;
}

static void unmap(struct object *object)
{
	if (object->mapping.address)
		rm_unmap(&object->mapping);
	rm_mapping_close(&object->mapping);
}

/* Mapped memory stays the driver's until it is unmapped and its file closed. */
static void let_go(struct worker *w, unsigned int i)
{
	struct object *object = &w->objects[i];
	int status;

	if (next_random(2)) {
		unmap(object);
		status = rm_free(&w->client, FIRST_HANDLE + i);
	} else {
		status = rm_free(&w->client, FIRST_HANDLE + i);
		unmap(object);
	}
	if (status) {
		if (!is_no_memory(status))
			note_odd(status);
		return;
	}
	forget(w, object);
	atomic_fetch_add(&shared->frees, 1);
}

static void map(struct worker *w, unsigned int i)
{
	struct object *object = &w->objects[i];

	if (object->mapping.address)
		return;
	if (rm_map(&w->client, FIRST_HANDLE + i, object->size, &object->mapping)) {
		object->mapping = (struct rm_mapping){ .fd = -1 };
		return;
	}
	*(volatile char *)object->mapping.address = 1;
	atomic_fetch_add(&shared->maps, 1);
}

static void end_keeper(struct place *place)
{
	pid_t keeper = place->keeper;

	if (!keeper)
		return;
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	place->keeper = 0;
}

static void unmap_all(struct worker *w)
{
	for (unsigned int i = 0; i < MAX_OBJECTS; i++)
		if (w->objects[i].size)
			unmap(&w->objects[i]);
}

/* Closes everything: the driver frees what was not freed, when the last has closed it. */
static void start_over(struct worker *w)
{
	bool keeper_last = next_random(2);

	unmap_all(w);
	if (!keeper_last)
		end_keeper(w->place);
	rm_close(&w->client);
	end_keeper(w->place);
	for (unsigned int i = 0; i < MAX_OBJECTS; i++)
		if (w->objects[i].size)
			forget(w, &w->objects[i]);
	while (rm_open(&w->client) && shared->phase != END)
		nap();
}

/* A child has every file of its parent's, and lives as long as it is let. It closes the
 * mappings', so that what the parent frees is free.
 */
static void leave_a_keeper(struct worker *w)
{
	pid_t pid;

	if (w->place->keeper)
		return;
	w->place->kept = false;
	pid = fork();
	if (pid < 0)
		return;
	if (pid) {
		w->place->keeper = pid;
		while (!w->place->kept)
			nap();
		atomic_fetch_add(&shared->keepers, 1);
		return;
	}
	unmap_all(w);
	enter_cgroup(next_random(nr_dirs));
	w->place->kept = true;
	for (;;)
		pause();
}

static void die(void)
{
	const struct rlimit no_core = { 0 };

	atomic_fetch_add(&shared->deaths, 1);
	switch (next_random(3)) {
	case 0:
		_exit(0);
	case 1:
		setrlimit(RLIMIT_CORE, &no_core);
		abort();
	default:
		kill(getpid(), SIGKILL);
	}
}

static void stand_still(struct worker *w)
{
	w->place->still = true;
	while (shared->phase == PAUSE)
		nap();
	w->place->still = false;
}

static void work(struct place *place)
{
	struct worker w = { .place = place, .client.fd = -1, .dir = next_random(nr_dirs) };
	unsigned int i, dice;

	if (enter_cgroup(w.dir))
		_exit(1);
	start_over(&w);
	while (shared->phase != END) {
		if (shared->phase == PAUSE)
			stand_still(&w);
		i = next_random(MAX_OBJECTS);
		dice = next_random(1000);
		if (dice < 1) {
			die();
		} else if (dice < 4) {
			start_over(&w);
		} else if (dice < 6) {
			leave_a_keeper(&w);
		} else if (dice < 16) {
			w.dir = next_random(nr_dirs);
			if (enter_cgroup(w.dir))
				_exit(1);
			atomic_fetch_add(&shared->moves, 1);
		} else if (!w.objects[i].size) {
			take(&w, i);
		} else if (dice < 400) {
			map(&w, i);
		} else {
			let_go(&w, i);
		}
	}
	_exit(0);
}

/* --- who looks after them -------------------------------------------------------- */

static void start_worker(struct place *place, uint64_t seed)
{
	pid_t pid = fork();

	if (pid) {
		place->pid = pid > 0 ? pid : 0;
		return;
	}
	random_state = seed;
	work(place);
}

/* A place is free when its worker, and who keeps the files, are gone. */
static void clear_place(struct place *place)
{
	if (place->pid)
		return;
	end_keeper(place);
	for (int i = 0; i < nr_dirs; i++)
		place->held[i] = 0;
}

static void bury(int workers)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < workers; i++)
			if (shared->places[i].pid == pid)
				shared->places[i].pid = 0;
}

static bool all_still(int workers)
{
	for (int i = 0; i < workers; i++)
		if (shared->places[i].pid && !shared->places[i].still)
			return false;
	return true;
}

static void report(int workers)
{
	for (int dir = 0; dir < nr_dirs; dir++) {
		uint64_t bytes = 0;

		for (int i = 0; i < workers; i++)
			bytes += shared->places[i].held[dir];
		printf("held %s %llu\n", dirs[dir], (unsigned long long)bytes);
	}
	puts("pause");
	fflush(stdout);
}

static void pause_all(int workers)
{
	char line[16];

	shared->phase = PAUSE;
	do {
		nap();
		bury(workers);
	} while (!all_still(workers));
	for (int i = 0; i < workers; i++)
		clear_place(&shared->places[i]);
	report(workers);
	if (!fgets(line, sizeof(line), stdin))
		shared->phase = END;
	else
		shared->phase = RUN;
}

int main(int argc, char **argv)
{
	double end, next_pause, pause_seconds;
	uint64_t seed;
	int workers;

	if (argc < 6 || argc - 5 > MAX_DIRS || atoi(argv[4]) > MAX_WORKERS) {
		fprintf(stderr, "usage: storm SEED SECONDS PAUSE WORKERS DIR...\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 0) * 1000003 + 1;
	pause_seconds = atof(argv[3]);
	workers = atoi(argv[4]);
	dirs = argv + 5;
	nr_dirs = argc - 5;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	/* Keepers of the dead are waited for here. */
	if (shared == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		perror("storm");
		return 1;
	}

	end = now() + atof(argv[2]);
	next_pause = now() + pause_seconds;
	while (now() < end && shared->phase != END) {
		bury(workers);
		for (int i = 0; i < workers; i++) {
			struct place *place = &shared->places[i];

			if (place->pid)
				continue;
			clear_place(place);
			start_worker(place, seed++ * 0x9e3779b97f4a7c15ull | 1);
		}
		nap();
		if (now() >= next_pause) {
			pause_all(workers);
			next_pause = now() + pause_seconds;
		}
	}
	shared->phase = END;
	for (int i = 0; i < workers; i++) {
		struct place *place = &shared->places[i];

		if (place->pid)
			waitpid(place->pid, NULL, 0);
		place->pid = 0;
		clear_place(place);
	}
	printf("end operations=%llu allocations=%llu refusals=%llu frees=%llu maps=%llu moves=%llu deaths=%llu keepers=%llu odd_status=%#x oddities=%llu\n",
	       (unsigned long long)(shared->allocations + shared->refusals + shared->frees +
				    shared->maps + shared->moves + shared->deaths +
				    shared->keepers),
	       (unsigned long long)shared->allocations, (unsigned long long)shared->refusals,
	       (unsigned long long)shared->frees, (unsigned long long)shared->maps,
	       (unsigned long long)shared->moves, (unsigned long long)shared->deaths,
	       (unsigned long long)shared->keepers, (unsigned int)shared->odd_status,
	       (unsigned long long)shared->oddities);
	return 0;
}
