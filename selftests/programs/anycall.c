// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * anycall SEED SECONDS FILE: makes any call of nvidia.ko's and nvidia-uvm.ko's that a program
 * without a GPU may make, in search of one that takes memory and can be repeated.
 *
 * The program knows no class, control or escape by its number: it tries all numbers and sizes,
 * and takes those for known that the driver answers otherwise than numbers which don't exist.
 * A call that the driver accepts is made again, up to thousands of times, with the same
 * arguments or others, and nothing is freed until the process ends. Processes follow each other,
 * each with some seconds, and share what is known; it is in FILE, for the next run. Prints one line at
 * the end: "calls=N accepted=N classes=N controls=N escapes=N uvm=N processes=N refused=N"; calls are
 * those of all runs, refused the processes that could not open the driver.
 */
#include "rmclient.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_DEVICES	3
#define ARGS_SIZE	8192
#define KEPT_SIZE	512		/* bytes kept of the arguments of a call that was accepted */
#define MAX_KNOWN	4096
#define MAX_ACCEPTED	1024
#define MAX_REPEATS	16384
#define LIFE_S		6		/* seconds that a process runs */
#define FIRST_HANDLE	0xcaf00000u
#define RANGE_ADDRESS	0x200000000ul

#define NR_ESCAPES	256
#define NR_UVM_CALLS	96
#define UVM_INITIALIZE	0x30000001

#define ESC_CONTROL	0x2a
#define ESC_ALLOC	0x2b

struct alloc_args {
	uint32_t root, parent, handle, class;
	uint64_t params;
	uint32_t params_size, status;
};

struct control_args {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size, status;
};

enum kind { OBJECT, CONTROL, ESCAPE, UVM, FILE_OF, MAPPING, NR_KINDS };

struct call {
	enum kind kind;
	uint32_t number;	/* class, command, escape, request, or which file */
	uint32_t size;		/* bytes of its arguments */
	unsigned char args[KEPT_SIZE];
};

/* The table that all processes read, and add to. */
static struct {
	atomic_ullong calls;
	atomic_uint nr_classes, nr_controls, nr_escapes, nr_accepted, nr_uvm;
	uint32_t next_class, next_control;	/* tried next, in search of known ones */
	uint32_t classes[MAX_KNOWN];
	struct {
		uint32_t number, size;
	} controls[MAX_KNOWN], escapes[MAX_KNOWN];
	struct call accepted[MAX_ACCEPTED];
} *shared;

static const char *const devices[NR_DEVICES] = {
	"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
};

static uint64_t random_state;
static int control_fd, uvm_fd;
static uint32_t root, next_handle = FIRST_HANDLE;
static unsigned char *args, *inner;	/* a call's arguments, and the target of their pointers */

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static uint64_t any_size(void)
{
	switch (next_random(4)) {
	case 0:
		return next_random(4096);
	case 1:
		return 4096 << next_random(12);
	case 2:
		return 65536 * next_random(1024);
	default:
		return 1ull << next_random(50);
	}
}

static uint32_t any_handle(void)
{
	uint32_t made = next_handle - FIRST_HANDLE;

	switch (next_random(3)) {
	case 0:
		return root;
	case 1:
		return next_handle++;
	default:
		return made ? FIRST_HANDLE + next_random(made) : root;
	}
}

/* Fields of 4 and 8 bytes, each of which may mean something. */
static void fill(unsigned char *bytes, size_t size)
{
	memset(bytes, 0, size);
	if (!next_random(4))
		return;
	for (size_t at = 0; at + 4 <= size;) {
		uint64_t value = 0;
		size_t width = at % 8 || at + 8 > size || next_random(2) ? 4 : 8;

		switch (next_random(12)) {
		case 0:
			value = 1;
			break;
		case 1:
			value = next_random(64);
			break;
		case 2:
			value = any_handle();
			break;
		case 3:
			value = (uintptr_t)(inner + next_random(4) * 1024);
			break;
		case 4:
			value = next_random(64) + 3;
			break;
		case 5:
			value = any_size();
			break;
		case 6:
			value = RANGE_ADDRESS + 4096 * next_random(1 << 20);
			break;
		case 7:
			value = control_fd;
			break;
		case 8:
			value = uvm_fd;
			break;
		case 9:
			value = ~0ull;
			break;
		default:
			break;
		}
		memcpy(bytes + at, &value, width);
		at += width;
	}
}

static int counted_ioctl(int fd, unsigned long request, void *argument)
{
	atomic_fetch_add(&shared->calls, 1);
	return ioctl(fd, request, argument);
}

static int escape(uint32_t number, uint32_t size, void *argument)
{
	return counted_ioctl(control_fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', number, size), argument);
}

/* The driver's status, or -1. */
static int alloc_object(uint32_t class, uint32_t parent, uint32_t size)
{
	struct alloc_args call = {
		.root = root, .parent = parent, .handle = next_handle++, .class = class,
		.params = size ? (uintptr_t)args : 0, .params_size = size,
	};

	return escape(ESC_ALLOC, sizeof(call), &call) ? -1 : (int)call.status;
}

static int control(uint32_t command, uint32_t object, uint32_t size)
{
	struct control_args call = {
		.client = root, .object = object, .command = command,
		.params = size ? (uintptr_t)args : 0, .params_size = size,
	};

	return escape(ESC_CONTROL, sizeof(call), &call) ? -1 : (int)call.status;
}

static int make(const struct call *call)
{
	switch (call->kind) {
	case OBJECT:
		return alloc_object(call->number, next_random(4) ? root : any_handle(), call->size);
	case CONTROL:
		return control(call->number, next_random(4) ? root : any_handle(), call->size);
	case ESCAPE:
		return escape(call->number, call->size, args);
	case UVM:
		return counted_ioctl(uvm_fd, call->number, args);
	case FILE_OF: {
		int fd = open(devices[call->number], O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return -1;
		/* The calls that follow may be on the newest file. */
		if (call->number == 0 && next_random(2))
			control_fd = fd;
		if (call->number == 1 && next_random(2)) {
			memset(args, 0, 64);
			counted_ioctl(fd, UVM_INITIALIZE, args);
			uvm_fd = fd;
		}
		return 0;
	}
	case MAPPING: {
		char *at = mmap((void *)(RANGE_ADDRESS + 4096 * next_random(1 << 24)),
				4096 * (1 + next_random(1 << 14)), PROT_READ | PROT_WRITE,
				MAP_SHARED, call->number ? uvm_fd : control_fd, 0);

		if (at == MAP_FAILED)
			return -1;
		/* A refused page is a SIGBUS, and the next process's turn. */
		if (call->number)
			*(volatile char *)at = 1;
		return 0;
	}
	default:
		return -1;
	}
}

static void keep_accepted(const struct call *call)
{
	unsigned int n = shared->nr_accepted;

	for (unsigned int i = 0; i < n && i < MAX_ACCEPTED; i++) {
		if (shared->accepted[i].kind == call->kind && shared->accepted[i].number == call->number &&
		    (next_random(8) || shared->accepted[i].size != call->size))
			return;
	}
	n = n < MAX_ACCEPTED ? shared->nr_accepted++ : next_random(MAX_ACCEPTED);
	if (call->kind == UVM)
		shared->nr_uvm++;
	shared->accepted[n] = *call;
}

static void repeat(struct call *call)
{
	unsigned int times = 1 << next_random(15);
	int same = next_random(2);

	if (times > MAX_REPEATS)
		times = MAX_REPEATS;
	for (unsigned int failed = 0; times && failed < 64; times--) {
		if (same)
			memcpy(args, call->args, KEPT_SIZE);
		else
			fill(args, call->size < ARGS_SIZE ? call->size : ARGS_SIZE);
		failed = make(call) ? failed + 1 : 0;
	}
}

static void try_new(struct call *call)
{
	fill(args, call->size);
	fill(inner, 4096);
	memcpy(call->args, args, KEPT_SIZE);
	if (make(call))
		return;
	keep_accepted(call);
	repeat(call);
}

/* Searches -------------------------------------------------------------------- */

static void search_classes(void)
{
	int unknown;

	memset(args, 0, ARGS_SIZE);
	unknown = alloc_object(0xfffe, root, 0);
	for (int i = 0; i < 2048; i++) {
		uint32_t class = (shared->next_class++ * 40503u) & 0xffff;

		if (alloc_object(class, root, 0) != unknown && shared->nr_classes < MAX_KNOWN)
			shared->classes[shared->nr_classes++] = class;
	}
}

/* Tries commands of the client's and of known classes: a category and an index each. */
static void search_controls(void)
{
	uint32_t n = shared->nr_classes;

	memset(args, 0, ARGS_SIZE);
	for (int i = 0; i < 1024; i++) {
		uint32_t next = shared->next_control++;
		uint32_t of = next / (32 * 256) % (n + 1);
		uint32_t command = (of ? shared->classes[of - 1] << 16 : 0) | (next % (32 * 256));
		int wrong = control(command, root, 1);

		if (wrong == control(0xffff, root, 1))
			continue;
		for (uint32_t size = 0; size <= ARGS_SIZE && shared->nr_controls < MAX_KNOWN; size += 4) {
			if (control(command, root, size) == wrong)
				continue;
			shared->controls[shared->nr_controls].number = command;
			shared->controls[shared->nr_controls++].size = size;
			break;
		}
	}
}

static void search_escapes(void)
{
	for (int i = 0; i < 4096; i++) {
		uint32_t number = next_random(NR_ESCAPES), size = 4 * next_random(128), known = 0;

		memset(args, 0, 512);
		if (escape(number, size, args) && (errno == EINVAL || errno == ENOTTY))
			continue;
		while (known < shared->nr_escapes && (shared->escapes[known].number != number ||
						      shared->escapes[known].size != size))
			known++;
		if (known == MAX_KNOWN || known < shared->nr_escapes)
			continue;
		shared->escapes[known].number = number;
		shared->escapes[known].size = size;
		shared->nr_escapes++;
	}
}

static void explore(void)
{
	struct call call = { .kind = next_random(NR_KINDS) };
	uint32_t n;

	switch (call.kind) {
	case OBJECT:
		n = shared->nr_classes;
		if (!n || !next_random(8))
			return search_classes();
		call.number = shared->classes[next_random(n)];
		call.size = 4 * next_random(80);
		break;
	case CONTROL:
		n = shared->nr_controls;
		if (!n || !next_random(8))
			return search_controls();
		n = next_random(n);
		call.number = shared->controls[n].number;
		call.size = shared->controls[n].size;
		break;
	case ESCAPE:
		n = shared->nr_escapes;
		if (!n || !next_random(8))
			return search_escapes();
		n = next_random(n);
		call.number = shared->escapes[n].number;
		call.size = shared->escapes[n].size;
		break;
	case UVM:
		call.number = next_random(NR_UVM_CALLS);
		call.size = 1024;
		break;
	case FILE_OF:
		call.number = next_random(NR_DEVICES);
		break;
	default:
		call.number = next_random(2);
		break;
	}
	try_new(&call);
}

static void live(uint64_t seed)
{
	struct rm_client client;

	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* The kernel is to kill this process, and not its parent, which counts. */
	if (fd < 0 || write(fd, "1000", 4) != 4)
		_exit(1);
	close(fd);
	random_state = seed;
	alarm(LIFE_S);
	if (rm_open(&client))
		_exit(1);
	control_fd = client.fd;
	root = client.root;
	uvm_fd = open(devices[1], O_RDWR | O_CLOEXEC);
	args = mmap(NULL, 4 * ARGS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (args == MAP_FAILED)
		_exit(1);
	inner = args + 2 * ARGS_SIZE;
	counted_ioctl(uvm_fd, UVM_INITIALIZE, args);
	for (;;) {
		unsigned int n = shared->nr_accepted;

		if (n && next_random(2)) {
			struct call call = shared->accepted[next_random(n < MAX_ACCEPTED ? n : MAX_ACCEPTED)];

			repeat(&call);
		} else {
			explore();
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 3 ? strtoull(argv[1], NULL, 0) : 0;
	time_t end = time(NULL) + (argc > 3 ? atoi(argv[2]) : 0);
	unsigned int processes = 0, refused = 0;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "usage: anycall SEED SECONDS FILE\n");
		return 2;
	}
	fd = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*shared))) {
		perror(argv[3]);
		return 1;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	shared->next_class = shared->next_control = seed * 2048;
	for (; time(NULL) < end; processes++) {
		int status;
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			live(((seed << 32) + processes) * 0x9e3779b97f4a7c15ull + 1);
		if (waitpid(pid, &status, 0) != pid)
			return 1;
		refused += WIFEXITED(status);
	}
	printf("calls=%llu accepted=%u classes=%u controls=%u escapes=%u uvm=%u processes=%u refused=%u\n",
	       (unsigned long long)shared->calls, shared->nr_accepted, shared->nr_classes,
	       shared->nr_controls, shared->nr_escapes, shared->nr_uvm, processes, refused);
	return shared->nr_accepted ? 0 : 1;
}
