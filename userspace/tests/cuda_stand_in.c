// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stands in for CUDA's driver library in tests, on a machine without a GPU. What a GB10 takes from
 * the system's memory it takes through the real driver: by clients without a device, and through
 * nvidia-uvm. What the GPU writes to managed memory, the CPU writes. Memory that may be handed over
 * is a client of its own, whose file is handed over.
 *
 *   STAND_IN_BLIND   cuMemAlloc takes huge pages, which are in no count
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rmclient.h"

#define EXPORTED	__attribute__((visibility("default")))

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_SUPPORTED = 801,
};

#define UVM_DEVICE		"/dev/nvidia-uvm"
#define UVM_INITIALIZE		0x30000001
/* Managed memory is where the program maps nothing else. */
#define MANAGED_ADDRESS		0x200000000ull
#define HUGE_PAGES		"/proc/sys/vm/nr_hugepages"
#define HUGE_PAGE		(2ull << 20)
#define MAX_BLOCKS		4096
/* The driver gives no more at once to a client without a device. */
#define CHUNK			(1ull << 20)
#define MAX_SHARED		16

struct block {
	unsigned long long size;	/* 0: free */
	unsigned int first;		/* handle of its first chunk */
	char *managed;			/* NULL for the driver's own allocator */
	int huge;
};

static struct rm_client client = { .fd = -1 };
static unsigned int next_handle = 1;
static struct block blocks[MAX_BLOCKS];
static struct rm_client shared[MAX_SHARED];
static unsigned long long managed_size;
static int uvm_fd = -1;
/* Freed to the pool of asynchronous allocations. */
static unsigned long long pooled[MAX_BLOCKS];
static unsigned int nr_pooled;

static int answer(int status)
{
	return !status ? SUCCESS : status == RM_ERR_NO_MEMORY ? OUT_OF_MEMORY : INVALID_VALUE;
}

static int free_chunks(struct rm_client *from, unsigned int first, unsigned long long size)
{
	int ret = 0;

	for (unsigned long long i = 0; i < size / CHUNK; i++) {
		int status = rm_free(from, first + i);

		ret = ret ? ret : status;
	}
	return answer(ret);
}

static int take_chunks(struct rm_client *from, unsigned int *first, unsigned long long size)
{
	*first = next_handle;
	for (unsigned long long done = 0; done < size; done += CHUNK) {
		int status = rm_alloc(from, next_handle, CHUNK);

		if (status) {
			free_chunks(from, *first, done);
			return answer(status);
		}
		next_handle++;
	}
	return SUCCESS;
}

EXPORTED int cuInit(unsigned int flags)
{
	return flags ? INVALID_VALUE : SUCCESS;
}

EXPORTED int cuDeviceGet(int *device, int ordinal)
{
	*device = 0;
	return ordinal ? INVALID_VALUE : SUCCESS;
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = attribute == 88;
	return SUCCESS;
}

static int open_uvm(void)
{
	struct {
		unsigned long long flags;
		unsigned int status;
	} args = { 0 };

	uvm_fd = open(UVM_DEVICE, O_RDWR | O_CLOEXEC);
	if (uvm_fd < 0 || ioctl(uvm_fd, UVM_INITIALIZE, &args) || args.status)
		return INVALID_VALUE;
	return SUCCESS;
}

/* A context has memory, too. */
EXPORTED int cuDevicePrimaryCtxRetain(void **context, int device)
{
	unsigned int first;
	int ret = answer(rm_open(&client));

	(void)device;
	if (!ret)
		ret = take_chunks(&client, &first, 40ull << 20);
	*context = &client;
	return ret ? ret : open_uvm();
}

EXPORTED int cuCtxSetCurrent(void *context)
{
	return context ? SUCCESS : INVALID_VALUE;
}

EXPORTED int cuCtxSynchronize(void)
{
	return SUCCESS;
}

/* A block is known by its number, from 1. */
static unsigned long long new_block(void)
{
	for (unsigned long long i = 1; i < MAX_BLOCKS; i++) {
		if (!blocks[i].size)
			return i;
	}
	return 0;
}

static int change_huge_pages(long long by)
{
	FILE *file = fopen(HUGE_PAGES, "r+");
	long long have = 0;
	int ret;

	if (!file)
		return NOT_SUPPORTED;
	ret = fscanf(file, "%lld", &have) == 1 ? SUCCESS : INVALID_VALUE;
	rewind(file);
	fprintf(file, "%lld\n", have + by);
	return fclose(file) ? OUT_OF_MEMORY : ret;
}

static int alloc_block(unsigned long long *pointer, size_t size, int huge)
{
	unsigned long long number = new_block();
	unsigned int first = 0;
	int ret;

	if (!number || !size)
		return INVALID_VALUE;
	ret = huge ? change_huge_pages(size / HUGE_PAGE) : take_chunks(&client, &first, size);
	if (ret)
		return ret;
	blocks[number] = (struct block){ .size = size, .first = first, .huge = huge };
	*pointer = number;
	return SUCCESS;
}

EXPORTED int cuMemAlloc_v2(unsigned long long *pointer, size_t size)
{
	return alloc_block(pointer, size, getenv("STAND_IN_BLIND") != NULL);
}

static struct block *find_managed(unsigned long long pointer)
{
	for (unsigned int i = 1; i < MAX_BLOCKS; i++) {
		if (blocks[i].size && blocks[i].managed == (char *)pointer)
			return &blocks[i];
	}
	return NULL;
}

EXPORTED int cuMemFree_v2(unsigned long long pointer)
{
	struct block *block = pointer < MAX_BLOCKS ? &blocks[pointer] : find_managed(pointer);
	int ret = SUCCESS;

	if (!block || !block->size)
		return INVALID_VALUE;
	if (block->managed)
		ret = munmap(block->managed, block->size) ? INVALID_VALUE : SUCCESS;
	else if (block->huge)
		ret = change_huge_pages(-(long long)(block->size / HUGE_PAGE));
	else
		ret = free_chunks(&client, block->first, block->size);
	*block = (struct block){ 0 };
	return ret;
}

/* The GPU's own writes to what the driver gave are no concern of the machine's. */
EXPORTED int cuMemsetD8_v2(unsigned long long pointer, unsigned char value, size_t size)
{
	if (pointer >= MAX_BLOCKS)
		memset((void *)pointer, value, size);
	return SUCCESS;
}

EXPORTED int cuDeviceGetDefaultMemPool(void **pool, int device)
{
	(void)device;
	*pool = pooled;
	return SUCCESS;
}

EXPORTED int cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
	(void)value;
	return pool == pooled && attribute == 4 ? SUCCESS : INVALID_VALUE;
}

EXPORTED int cuMemAllocAsync(unsigned long long *pointer, size_t size, void *stream)
{
	return stream ? INVALID_VALUE : alloc_block(pointer, size, 0);
}

EXPORTED int cuMemFreeAsync(unsigned long long pointer, void *stream)
{
	if (stream || nr_pooled == MAX_BLOCKS)
		return INVALID_VALUE;
	pooled[nr_pooled++] = pointer;
	return SUCCESS;
}

EXPORTED int cuMemPoolTrimTo(void *pool, size_t size)
{
	int ret = pool == pooled && !size ? SUCCESS : INVALID_VALUE;

	while (!ret && nr_pooled)
		ret = cuMemFree_v2(pooled[--nr_pooled]);
	return ret;
}

EXPORTED int cuMemAllocManaged(unsigned long long *pointer, size_t size, unsigned int flags)
{
	unsigned long long number = new_block();
	char *wanted = (char *)(MANAGED_ADDRESS + managed_size);

	if (flags != 1 || !number)
		return INVALID_VALUE;
	/* The driver wants offset and address to be equal. */
	if (mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, uvm_fd,
		 (off_t)wanted) == MAP_FAILED)
		return OUT_OF_MEMORY;
	managed_size += size;
	blocks[number] = (struct block){ .size = size, .managed = wanted };
	*pointer = (unsigned long long)wanted;
	return SUCCESS;
}

EXPORTED int cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
	size_t page = getpagesize();
	char *begin;

	if (flags)
		return INVALID_VALUE;
	begin = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (begin == MAP_FAILED)
		return OUT_OF_MEMORY;
	*(size_t *)begin = size;
	*pointer = begin + page;
	return SUCCESS;
}

EXPORTED int cuMemFreeHost(void *pointer)
{
	char *begin = (char *)pointer - getpagesize();

	return munmap(begin, *(size_t *)begin + getpagesize()) ? INVALID_VALUE : SUCCESS;
}

EXPORTED int cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags)
{
	return !pointer || !size || flags ? INVALID_VALUE : SUCCESS;
}

EXPORTED int cuMemHostUnregister(void *pointer)
{
	return pointer ? SUCCESS : INVALID_VALUE;
}

struct properties {
	int type, handle_types, location, id;
};

static int new_shared(unsigned long long *handle)
{
	for (int i = 0; i < MAX_SHARED; i++) {
		if (!shared[i].root) {
			*handle = i + 1;
			return SUCCESS;
		}
	}
	return OUT_OF_MEMORY;
}

EXPORTED int cuMemCreate(unsigned long long *handle, size_t size,
			 const struct properties *properties, unsigned long long flags)
{
	int ret = flags || properties->type != 1 ? INVALID_VALUE : new_shared(handle);
	unsigned int first;

	if (!ret)
		ret = answer(rm_open(&shared[*handle - 1]));
	return ret ? ret : take_chunks(&shared[*handle - 1], &first, size);
}

EXPORTED int cuMemRelease(unsigned long long handle)
{
	struct rm_client *its = &shared[handle - 1];

	if (!handle || handle > MAX_SHARED || !its->root)
		return INVALID_VALUE;
	rm_close(its);
	return SUCCESS;
}

EXPORTED int cuMemExportToShareableHandle(void *file, unsigned long long handle, int type,
					  unsigned long long flags)
{
	if (type != 1 || flags || !handle || handle > MAX_SHARED || !shared[handle - 1].root)
		return INVALID_VALUE;
	*(int *)file = dup(shared[handle - 1].fd);
	return *(int *)file < 0 ? OUT_OF_MEMORY : SUCCESS;
}

EXPORTED int cuMemImportFromShareableHandle(unsigned long long *handle, void *file, int type)
{
	int ret = type == 1 ? new_shared(handle) : INVALID_VALUE;

	if (ret)
		return ret;
	shared[*handle - 1] = (struct rm_client){ .fd = dup((int)(long)file), .root = 1 };
	return shared[*handle - 1].fd < 0 ? INVALID_VALUE : SUCCESS;
}
