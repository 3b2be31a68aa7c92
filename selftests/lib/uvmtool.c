// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * uvmtool: managed memory of nvidia-uvm without a GPU. A range of the address
 * space is handed to the driver, which fills it with pages as the CPU touches it.
 */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define UVM_DEVICE		"/dev/nvidia-uvm"
#define UVM_IOCTL_INITIALIZE	0x30000001

/* Any address the program doesn't use: the driver wants offset and address equal. */
#define RANGE_ADDRESS		0x200000000ul

struct uvm_initialize_args {
	uint64_t flags;
	uint32_t status;
};

static int uvm_fd = -1;
static char *range;
static uint64_t range_size;

static int cmd_open(int argc, char **argv)
{
	struct uvm_initialize_args args = { 0 };

	(void)argc;
	(void)argv;
	uvm_fd = open(UVM_DEVICE, O_RDWR | O_CLOEXEC);
	if (uvm_fd < 0)
		return -errno;
	if (ioctl(uvm_fd, UVM_IOCTL_INITIALIZE, &args))
		return -errno;
	return args.status;
}

static int cmd_map(int argc, char **argv)
{
	void *wanted = (void *)RANGE_ADDRESS;
	int ret = script_parse_size(argv[1], &range_size);

	(void)argc;
	if (ret)
		return ret;
	range = mmap(wanted, range_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     uvm_fd, RANGE_ADDRESS);
	if (range == MAP_FAILED) {
		range = NULL;
		return -errno;
	}
	return 0;
}

static int cmd_touch(int argc, char **argv)
{
	uint64_t size = range_size;
	int ret = argc > 1 ? script_parse_size(argv[1], &size) : 0;

	if (ret)
		return ret;
	if (!range || size > range_size)
		return -EINVAL;
	memset(range, 0x5a, size);
	return 0;
}

static int cmd_unmap(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!range)
		return -ENOENT;
	if (munmap(range, range_size))
		return -errno;
	range = NULL;
	return 0;
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
	{ "open", "", 0, cmd_open },
	{ "map", "SIZE", 1, cmd_map },
	{ "touch", "[SIZE]", 0, cmd_touch },
	{ "unmap", "", 0, cmd_unmap },
	{ "close", "", 0, cmd_close },
	{ 0 }
};

static void report(void)
{
	script_note("mapped=%llu", (unsigned long long)(range ? range_size : 0));
}

int main(int argc, char **argv)
{
	return script_run(argc, argv, commands, report);
}
