// SPDX-License-Identifier: GPL-2.0-or-later
#include "rmclient.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLASS_CLIENT		0x0041
#define CLASS_EVENT		0x0079
#define CLASS_MEMORY_DEVICELESS	0x90ce

/* Cached CPU mapping: anything else makes x86 change the memory's attributes. */
#define ATTR_COHERENCY_CACHED	(1u << 29)

struct rm_alloc_args {
	uint32_t root;
	uint32_t parent;
	uint32_t handle;
	uint32_t class;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};

struct rm_free_args {
	uint32_t root;
	uint32_t parent;
	uint32_t handle;
	uint32_t status;
};

struct rm_map_args {
	uint32_t client;
	uint32_t device;
	uint32_t memory;
	uint32_t pad;
	uint64_t offset;
	uint64_t length;
	uint64_t address;
	uint32_t status;
	uint32_t flags;
	int32_t fd;
	uint32_t pad2;
};

/* The driver copies as much of this as its own version knows; 550 added the node. */
struct rm_memory_params {
	uint32_t owner;
	uint32_t type;
	uint32_t flags;
	uint32_t width;
	uint32_t height;
	int32_t pitch;
	uint32_t attr;
	uint32_t attr2;
	uint32_t format;
	uint32_t compression;
	uint32_t zcull;
	uint32_t pad;
	uint64_t range_low;
	uint64_t range_high;
	uint64_t size;
	uint64_t alignment;
	uint64_t offset;
	uint64_t limit;
	uint64_t address;
	uint32_t tag_offset;
	uint32_t address_space;
	uint32_t internal_flags;
	uint32_t tag;
	int32_t numa_node;
	uint32_t pad2;
};

struct rm_event_params {
	uint32_t client;
	uint32_t source;
	uint32_t class;
	uint32_t index;
	uint64_t data;
};

struct rm_event_file_args {
	uint32_t root;
	uint32_t device;
	uint32_t fd;
	uint32_t status;
};

#define IOCTL_FREE	_IOWR('F', 0x29, struct rm_free_args)
#define IOCTL_ALLOC	_IOWR('F', 0x2b, struct rm_alloc_args)
#define IOCTL_EVENT	_IOWR('F', 0xce, struct rm_event_file_args)
#define IOCTL_MAP	_IOWR('F', 0x4e, struct rm_map_args)

static int alloc_object(int fd, struct rm_alloc_args *args)
{
	if (ioctl(fd, IOCTL_ALLOC, args))
		return -errno;
	return args->status;
}

int rm_open(struct rm_client *client)
{
	struct rm_alloc_args args = { .class = CLASS_CLIENT };
	int ret;

	client->fd = open(RM_CONTROL_DEVICE, O_RDWR | O_CLOEXEC);
	if (client->fd < 0)
		return -errno;

	ret = alloc_object(client->fd, &args);
	if (ret) {
		rm_close(client);
		return ret;
	}
	client->root = args.handle;
	return 0;
}

void rm_close(struct rm_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	client->root = 0;
}

int rm_alloc(const struct rm_client *client, uint32_t handle, uint64_t size)
{
	struct rm_memory_params params = {
		.attr = ATTR_COHERENCY_CACHED,
		.size = size,
		.numa_node = -1,
	};
	struct rm_alloc_args args = {
		.root = client->root,
		.parent = client->root,
		.handle = handle,
		.class = CLASS_MEMORY_DEVICELESS,
		.params = (uintptr_t)&params,
		.params_size = sizeof(params),
	};

	return alloc_object(client->fd, &args);
}

int rm_event_file(const struct rm_client *client)
{
	struct rm_event_file_args args = { .root = client->root, .fd = client->fd };

	if (ioctl(client->fd, IOCTL_EVENT, &args))
		return -errno;
	return args.status;
}

int rm_alloc_event(const struct rm_client *client, uint32_t handle)
{
	struct rm_event_params params = {
		.client = client->root,
		.source = client->root,
		.class = CLASS_EVENT,
		.data = client->fd,
	};
	struct rm_alloc_args args = {
		.root = client->root,
		.parent = client->root,
		.handle = handle,
		.class = CLASS_EVENT,
		.params = (uintptr_t)&params,
		.params_size = sizeof(params),
	};

	return alloc_object(client->fd, &args);
}

int rm_free(const struct rm_client *client, uint32_t handle)
{
	struct rm_free_args args = {
		.root = client->root,
		.parent = client->root,
		.handle = handle,
	};

	if (ioctl(client->fd, IOCTL_FREE, &args))
		return -errno;
	return args.status;
}

int rm_map(const struct rm_client *client, uint32_t handle, size_t size,
	   struct rm_mapping *mapping)
{
	/* The memory belongs to no device: the client itself stands in for it. */
	struct rm_map_args args = {
		.client = client->root,
		.device = client->root,
		.memory = handle,
		.length = size,
	};
	void *address;
	int ret;

	mapping->address = NULL;
	mapping->size = size;
	mapping->fd = open(RM_CONTROL_DEVICE, O_RDWR | O_CLOEXEC);
	if (mapping->fd < 0)
		return -errno;

	args.fd = mapping->fd;
	if (ioctl(client->fd, IOCTL_MAP, &args)) {
		ret = -errno;
		goto err_close;
	}
	if (args.status) {
		ret = args.status;
		goto err_close;
	}

	address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mapping->fd, 0);
	if (address == MAP_FAILED) {
		ret = -errno;
		goto err_close;
	}
	mapping->address = address;
	return 0;

err_close:
	rm_mapping_close(mapping);
	return ret;
}

int rm_unmap(struct rm_mapping *mapping)
{
	if (munmap(mapping->address, mapping->size))
		return -errno;
	mapping->address = NULL;
	return 0;
}

void rm_mapping_close(struct rm_mapping *mapping)
{
	if (mapping->fd >= 0)
		close(mapping->fd);
	mapping->fd = -1;
}
