// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * uvmtool: takes memory by way of nvidia-uvm without a GPU, and lets it go, as a script
 * says. Managed memory is a range of the address space, which the driver fills with pages
 * as the CPU touches them or as they are migrated to the CPU. The rest is what the driver
 * keeps for a caller who asks for it by name: pools of semaphores, external ranges, range
 * groups, VA spaces.
 */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define UVM_DEVICE		"/dev/nvidia-uvm"

/* Addresses that the program doesn't use: managed ranges begin at the second, and have no
 * end; what has no mapping of its own lies between the two.
 */
#define UNMAPPED_ADDRESS	0x100000000ul
#define RANGE_ADDRESS		0x200000000ul

#define MAX_THREADS		64

/* Their numbers and layouts are the same in 535 to 595. */
#define UVM_CREATE_RANGE_GROUP		23
#define UVM_SET_RANGE_GROUP		31
#define UVM_ENABLE_READ_DUPLICATION	44
#define UVM_MIGRATE			51
#define UVM_ALLOC_SEMAPHORE_POOL	68
#define UVM_CREATE_EXTERNAL_RANGE	73
#define UVM_MM_INITIALIZE		75
#define UVM_INITIALIZE			0x30000001

struct uvm_initialize_args {
	uint64_t flags;
	uint32_t status;
};

struct uvm_mm_initialize_args {
	int32_t uvm_fd;
	uint32_t status;
};

struct uvm_range_group_args {
	uint64_t id;
	uint32_t status;
};

struct uvm_area {
	uint64_t base;
	uint64_t length;
};

struct uvm_set_group_args {
	uint64_t id;
	struct uvm_area area;
	uint32_t status;
};

struct uvm_read_duplication_args {
	struct uvm_area area;
	uint32_t status;
};

struct uvm_external_range_args {
	struct uvm_area area;
	uint32_t status;
};

struct uvm_semaphore_pool_args {
	struct uvm_area area;
	char attributes[256][36];	/* one for each GPU */
	uint64_t nr_attributes;
	uint32_t status;
};

struct uvm_migrate_args {
	struct uvm_area area;
	uint8_t destination[16];
	uint32_t flags;
	uint64_t semaphore;
	uint32_t payload;
	int32_t node;
	uint64_t user_start;
	uint64_t user_length;
	uint32_t status;
};

/* The driver's id of the CPU. */
static const uint8_t cpu_uuid[16] = {
	0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2,
	0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73
};

static int uvm_fd = -1;
static char *const range = (char *)RANGE_ADDRESS;
static uint64_t range_size;		/* total of the mappings, which are contiguous */
static uint64_t unmapped_size;		/* total at UNMAPPED_ADDRESS */

/* Makes a call of which @status is the driver's answer. */
static int uvm_call(int fd, unsigned long request, void *args, const uint32_t *status)
{
	if (ioctl(fd, request, args))
		return -errno;
	return *status;
}

static int open_space(uint64_t flags)
{
	struct uvm_initialize_args args = { .flags = flags };
	int fd = open(UVM_DEVICE, O_RDWR | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = uvm_call(fd, UVM_INITIALIZE, &args, &args.status);
	if (!ret)
		return fd;
	close(fd);
	return ret < 0 ? ret : -EIO;
}

static int cmd_open(int argc, char **argv)
{
	int fd = open_space(argc > 1 ? strtoull(argv[1], NULL, 0) : 0);

	if (fd < 0)
		return fd;
	uvm_fd = fd;
	return 0;
}

/* The file stays open: with it, the driver would let go of the address space. */
static int cmd_mm(int argc, char **argv)
{
	struct uvm_mm_initialize_args args = { .uvm_fd = uvm_fd };
	int fd = open(UVM_DEVICE, O_RDWR | O_CLOEXEC);

	(void)argc;
	(void)argv;
	if (fd < 0)
		return -errno;
	return uvm_call(fd, UVM_MM_INITIALIZE, &args, &args.status);
}

static unsigned long count_of(int argc, char **argv, int at)
{
	return argc > at ? strtoul(argv[at], NULL, 0) : 1;
}

/* Calls @one until it has been called @count times, or fails. */
static int repeat(unsigned long count, int (*one)(uint64_t size), uint64_t size)
{
	unsigned long done;
	int ret = 0;

	for (done = 0; done < count; done++) {
		ret = one(size);
		if (ret)
			break;
	}
	script_note("count=%lu", done);
	return ret;
}

static int repeat_sized(int argc, char **argv, int (*one)(uint64_t size))
{
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);

	return ret ? ret : repeat(count_of(argc, argv, 2), one, size);
}

/* The driver wants offset and address to be equal. */
static int map_one(uint64_t size)
{
	char *wanted = range + range_size;

	if (mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		 uvm_fd, (off_t)(uintptr_t)wanted) == MAP_FAILED)
		return -errno;
	range_size += size;
	return 0;
}

static int cmd_map(int argc, char **argv)
{
	return repeat_sized(argc, argv, map_one);
}

struct toucher {
	pthread_t thread;
	uint64_t from, to, stride;
};

static void *touch(void *data)
{
	const struct toucher *toucher = data;

	for (uint64_t at = toucher->from; at < toucher->to; at += toucher->stride)
		*(volatile char *)(range + at) = 0x5a;
	return NULL;
}

/* Each thread has as many strides as the others, and what is left of @size has none. */
static int touch_together(uint64_t size, uint64_t stride, unsigned int nr)
{
	uint64_t each = size / stride / nr * stride;
	struct toucher touchers[MAX_THREADS];
	unsigned int started;
	int ret = 0;

	for (started = 0; started < nr; started++) {
		struct toucher *toucher = &touchers[started];

		*toucher = (struct toucher){ .from = started * each, .to = (started + 1) * each,
					     .stride = stride };
		ret = -pthread_create(&toucher->thread, NULL, touch, toucher);
		if (ret)
			break;
	}
	for (unsigned int i = 0; i < started; i++)
		pthread_join(touchers[i].thread, NULL);
	return ret;
}

static int cmd_touch(int argc, char **argv)
{
	unsigned long nr = count_of(argc, argv, 3);
	uint64_t size = range_size, stride = 0;
	int ret = argc > 1 ? script_parse_size(argv[1], &size) : 0;

	if (!ret && argc > 2)
		ret = script_parse_size(argv[2], &stride);
	if (ret)
		return ret;
	if (!range_size || size > range_size || !nr || nr > MAX_THREADS)
		return -EINVAL;
	if (stride)
		return touch_together(size, stride, nr);
	memset(range, 0x5a, size);
	return 0;
}

static int cmd_unmap(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!range_size)
		return -ENOENT;
	if (munmap(range, range_size))
		return -errno;
	range_size = 0;
	return 0;
}

static int cmd_migrate(int argc, char **argv)
{
	struct uvm_migrate_args args = {
		.area = { RANGE_ADDRESS, range_size }, .node = -1,
	};

	(void)argc;
	(void)argv;
	memcpy(args.destination, cpu_uuid, sizeof(args.destination));
	return uvm_call(uvm_fd, UVM_MIGRATE, &args, &args.status);
}

/* Makes a call whose arguments begin with an area, which is the next that has no mapping. */
static int place_one(unsigned long request, struct uvm_area *area, uint64_t size,
		     const uint32_t *status)
{
	int ret;

	area->base = UNMAPPED_ADDRESS + unmapped_size;
	area->length = size;
	if (size > RANGE_ADDRESS - area->base)
		return -ENOSPC;
	ret = uvm_call(uvm_fd, request, area, status);
	unmapped_size += ret ? 0 : size;
	return ret;
}

static int pool_one(uint64_t size)
{
	static struct uvm_semaphore_pool_args args;

	return place_one(UVM_ALLOC_SEMAPHORE_POOL, &args.area, size, &args.status);
}

/* Any address and any length, which the driver has to look at itself. */
static int cmd_pool_at(int argc, char **argv)
{
	static struct uvm_semaphore_pool_args args;

	(void)argc;
	args.area = (struct uvm_area){ strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0) };
	return uvm_call(uvm_fd, UVM_ALLOC_SEMAPHORE_POOL, &args, &args.status);
}

static int external_one(uint64_t size)
{
	struct uvm_external_range_args args = { 0 };

	return place_one(UVM_CREATE_EXTERNAL_RANGE, &args.area, size, &args.status);
}

static int cmd_pool(int argc, char **argv)
{
	return repeat_sized(argc, argv, pool_one);
}

static int cmd_external(int argc, char **argv)
{
	return repeat_sized(argc, argv, external_one);
}

static int make_group(uint64_t *id)
{
	struct uvm_range_group_args args = { 0 };
	int ret = uvm_call(uvm_fd, UVM_CREATE_RANGE_GROUP, &args, &args.status);

	*id = args.id;
	return ret;
}

static int group_one(uint64_t size)
{
	uint64_t id;

	(void)size;
	return make_group(&id);
}

static int cmd_groups(int argc, char **argv)
{
	return repeat(count_of(argc, argv, 1), group_one, 0);
}

static int space_one(uint64_t flags)
{
	int fd = open_space(flags);

	return fd < 0 ? fd : 0;
}

static int file_one(uint64_t flags)
{
	(void)flags;
	return open(UVM_DEVICE, O_RDWR | O_CLOEXEC) < 0 ? -errno : 0;
}

static int cmd_files(int argc, char **argv)
{
	return repeat(count_of(argc, argv, 1), file_one, 0);
}

static int null_one(uint64_t flags)
{
	(void)flags;
	return open("/dev/null", O_RDWR | O_CLOEXEC) < 0 ? -errno : 0;
}

static int cmd_nulls(int argc, char **argv)
{
	return repeat(count_of(argc, argv, 1), null_one, 0);
}

/*
 * A queue of events for a profiler, of 256 KiB and always the same, for which the driver has an array
 * and page tables each time.
 */
#define TOOLS_DEVICE			UVM_DEVICE "-tools"
#define UVM_TOOLS_INIT_EVENT_TRACKER	56
#define QUEUE_SIZE			(256ul << 10)
/* Number of times that pages can be pinned. */
#define QUEUE_USERS			2000

static int tools_one(uint64_t number)
{
	struct {
		uint64_t queue, entries, control;
		uint8_t uuid[16];
		uint32_t all, uvm_fd, status, wanted, granted;
	} args = { .entries = QUEUE_SIZE / 64, .all = 1, .uvm_fd = uvm_fd, .wanted = 1 };
	static unsigned int users;
	static char *queue;
	int fd = open(TOOLS_DEVICE, O_RDWR | O_CLOEXEC);

	(void)number;
	if (fd < 0)
		return -errno;
	if (users++ % QUEUE_USERS == 0) {
		queue = mmap(NULL, 2 * QUEUE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (queue == MAP_FAILED)
			return -errno;
	}
	args.queue = (uintptr_t)queue;
	args.control = (uintptr_t)queue + QUEUE_SIZE;
	return uvm_call(fd, UVM_TOOLS_INIT_EVENT_TRACKER, &args, &args.status);
}

static int cmd_tools(int argc, char **argv)
{
	return repeat(count_of(argc, argv, 1), tools_one, 0);
}

/* Every second page is protected otherwise than the one before: each is a mapping of its own, and
 * a range of the driver's.
 */
static int cmd_split(int argc, char **argv)
{
	unsigned long count = count_of(argc, argv, 1), page = sysconf(_SC_PAGESIZE), done;
	int ret = 0;

	for (done = 0; done < count && !ret; done++) {
		uint64_t at = (2 * done + 1) * page;

		if (at + page > range_size)
			return -EINVAL;
		ret = mprotect(range + at, page, PROT_READ) ? -errno : 0;
	}
	script_note("count=%lu", done);
	return ret;
}

/* Calls @one for that many pages of the mapping, from its beginning. */
static int repeat_by_page(int argc, char **argv, int (*one)(struct uvm_area page))
{
	unsigned long count = count_of(argc, argv, 1), size = sysconf(_SC_PAGESIZE), done;
	int ret = 0;

	if (count > range_size / size)
		return -EINVAL;
	for (done = 0; done < count; done++) {
		ret = one((struct uvm_area){ RANGE_ADDRESS + done * size, size });
		if (ret)
			break;
	}
	script_note("count=%lu", done);
	return ret;
}

static uint64_t groups[2];

/* Alternates between two groups, so that no range is in its neighbour's. */
static int assign_one(struct uvm_area page)
{
	struct uvm_set_group_args args = {
		.id = groups[page.base / page.length % 2], .area = page,
	};

	return uvm_call(uvm_fd, UVM_SET_RANGE_GROUP, &args, &args.status);
}

static int cmd_assign(int argc, char **argv)
{
	int ret = make_group(&groups[0]);

	if (!ret)
		ret = make_group(&groups[1]);
	return ret ? ret : repeat_by_page(argc, argv, assign_one);
}

/* Each becomes a range of the driver's; it leaves those alone that have the policy already. */
static int slice_one(struct uvm_area page)
{
	struct uvm_read_duplication_args args = { .area = page };

	return uvm_call(uvm_fd, UVM_ENABLE_READ_DUPLICATION, &args, &args.status);
}

static int cmd_slice(int argc, char **argv)
{
	return repeat_by_page(argc, argv, slice_one);
}

static int cmd_spaces(int argc, char **argv)
{
	return repeat(count_of(argc, argv, 1), space_one, 0);
}

static int cmd_close(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	close(uvm_fd);
	uvm_fd = -1;
	return 0;
}

static const struct script_command commands[] = {
	{ "open", "[FLAGS]    (of UVM_INITIALIZE)", 0, cmd_open },
	{ "mm", "    (UVM_MM_INITIALIZE, as CUDA does: the VA space is the process's)", 0, cmd_mm },
	{ "map", "SIZE [COUNT]", 1, cmd_map },
	{ "touch", "[SIZE [STRIDE [THREADS]]]    (every byte, or one in each STRIDE)", 0,
	  cmd_touch },
	{ "unmap", "    (all that is mapped)", 0, cmd_unmap },
	{ "migrate", "    (all that is mapped, to the CPU, which needn't touch it)", 0,
	  cmd_migrate },
	{ "pool", "SIZE [COUNT]    (of semaphores)", 1, cmd_pool },
	{ "pool_at", "ADDRESS LENGTH    (such a pool, however long)", 2, cmd_pool_at },
	{ "external", "SIZE [COUNT]    (ranges of the address space, for memory of others)", 1,
	  cmd_external },
	{ "groups", "COUNT    (of ranges)", 1, cmd_groups },
	{ "assign", "COUNT    (pages of what is mapped to two groups, by turns)", 1, cmd_assign },
	{ "slice", "COUNT    (a policy for each of that many mapped pages)", 1, cmd_slice },
	{ "files", "COUNT    (open the device so often, without a VA space)", 1, cmd_files },
	{ "tools", "COUNT    (queues of events for a profiler)", 1, cmd_tools },
	{ "nulls", "COUNT    (the same with /dev/null)", 1, cmd_nulls },
	{ "split", "COUNT    (protect that many mapped pages, each apart)", 1, cmd_split },
	{ "spaces", "COUNT    (VA spaces beside the one that is open)", 1, cmd_spaces },
	{ "close", "", 0, cmd_close },
	{ 0 }
};

static void report(void)
{
	script_note("mapped=%llu", (unsigned long long)range_size);
}

int main(int argc, char **argv)
{
	return script_run(argc, argv, commands, report);
}
