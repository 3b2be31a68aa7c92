// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A library with NVML's soname. The real library is the one other library that it needs, so
 * the dynamic linker finds every function that isn't here in that one. What is here asks the
 * real one first, and changes its answer only for a device whose memory it can't tell: see
 * is_unknown(). It is loaded into other people's programs: it starts no threads, keeps no file
 * open, and needs nothing but the C library.
 */
#include "nvml.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "known.h"

enum call {
	MEMORY,
	MEMORY_V2,
	BAR1,
	IS_MIG,
	VIRTUALIZATION,
	DETAILS,
	COMPUTE,
	COMPUTE_V2,
	COMPUTE_V3,
	GRAPHICS,
	GRAPHICS_V2,
	GRAPHICS_V3,
	MPS,
	MPS_V2,
	MPS_V3,
	CALLS,
};

static const char *const names[CALLS] = {
	[MEMORY] = "nvmlDeviceGetMemoryInfo",
	[MEMORY_V2] = "nvmlDeviceGetMemoryInfo_v2",
	[BAR1] = "nvmlDeviceGetBAR1MemoryInfo",
	[IS_MIG] = "nvmlDeviceIsMigDeviceHandle",
	[VIRTUALIZATION] = "nvmlDeviceGetVirtualizationMode",
	[DETAILS] = "nvmlDeviceGetRunningProcessDetailList",
	[COMPUTE] = "nvmlDeviceGetComputeRunningProcesses",
	[COMPUTE_V2] = "nvmlDeviceGetComputeRunningProcesses_v2",
	[COMPUTE_V3] = "nvmlDeviceGetComputeRunningProcesses_v3",
	[GRAPHICS] = "nvmlDeviceGetGraphicsRunningProcesses",
	[GRAPHICS_V2] = "nvmlDeviceGetGraphicsRunningProcesses_v2",
	[GRAPHICS_V3] = "nvmlDeviceGetGraphicsRunningProcesses_v3",
	[MPS] = "nvmlDeviceGetMPSComputeRunningProcesses",
	[MPS_V2] = "nvmlDeviceGetMPSComputeRunningProcesses_v2",
	[MPS_V3] = "nvmlDeviceGetMPSComputeRunningProcesses_v3",
};

typedef void any_function(void);

/* The oldest there is: the library is loaded in containers whose C library is older than ours. */
#if defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif

/* The real library's; each is looked up once. NULL where it has none. */
static any_function *real(enum call call)
{
	static _Atomic(any_function *) functions[CALLS];
	any_function *function = atomic_load_explicit(&functions[call], memory_order_relaxed);

	if (!function) {
		void *address = dlsym(RTLD_NEXT, names[call]);

		memcpy(&function, &address, sizeof(function));
		atomic_store_explicit(&functions[call], function, memory_order_relaxed);
	}
	return function;
}

static int real_memory(struct nvml_device *device, struct nvml_memory *memory)
{
	nvml_memory_function *function = (nvml_memory_function *)real(MEMORY);

	return function ? function(device, memory) : NVML_FUNCTION_NOT_FOUND;
}

/* --- whose memory the real library can tell ---------------------------------------- */

/* Devices that were found to have memory of their own: it stays so. A few dozen at most. */
static _Atomic(struct nvml_device *) with_memory[64];

static bool has_memory(struct nvml_device *device)
{
	size_t i;

	for (i = 0; i < sizeof(with_memory) / sizeof(*with_memory); i++) {
		struct nvml_device *other =
			atomic_load_explicit(&with_memory[i], memory_order_relaxed);

		if (!other)
			break;
		if (other == device)
			return true;
	}
	return false;
}

static void remember_memory(struct nvml_device *device)
{
	size_t i;

	for (i = 0; i < sizeof(with_memory) / sizeof(*with_memory); i++) {
		struct nvml_device *nobody = NULL;

		if (atomic_compare_exchange_strong(&with_memory[i], &nobody, device) ||
		    nobody == device)
			break;
	}
}

static bool number_is(enum call call, struct nvml_device *device, unsigned int wanted)
{
	nvml_number_function *function = (nvml_number_function *)real(call);
	unsigned int number = 0;

	return function && function(device, &number) == NVML_SUCCESS && number == wanted;
}

/* A window into its memory, or a part of a device that has one: it is not the machine's. */
static bool is_discrete(struct nvml_device *device)
{
	nvml_bar1_function *bar1_of = (nvml_bar1_function *)real(BAR1);
	struct nvml_bar1 bar1 = { 0 };

	return (bar1_of && bar1_of(device, &bar1) == NVML_SUCCESS && bar1.total > 0) ||
	       number_is(IS_MIG, device, 1) ||
	       number_is(VIRTUALIZATION, device, NVML_VIRTUAL_GPU);
}

/*
 * Can the real library not tell the device's memory? It can't where it says so, and where it
 * says nothing: a total of zero. It is wrong where a device that has no memory of its own has
 * less than half of the machine's: the memory is shared, and all of it is available.
 */
static bool is_unknown(struct nvml_device *device, int result, unsigned long long total)
{
	if (result == NVML_NOT_SUPPORTED)
		return true;
	if (result != NVML_SUCCESS || has_memory(device))
		return false;
	if (total == 0)
		return true;
	if (is_discrete(device)) {
		remember_memory(device);
		return false;
	}
	return total < known_machine_memory() / 2;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	int result = real_memory(device, memory);
	struct known_memory known;

	if (!memory || !is_unknown(device, result, memory->total) || !read_known_memory(&known))
		return result;
	memory->total = known.total;
	memory->free = known.free;
	memory->used = known.total - known.free;
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device,
					   struct nvml_memory_v2 *memory)
{
	nvml_memory_v2_function *function = (nvml_memory_v2_function *)real(MEMORY_V2);
	struct known_memory known;
	int result;

	if (!function)
		return NVML_FUNCTION_NOT_FOUND;
	result = function(device, memory);
	if (!memory || memory->version != NVML_VERSION(struct nvml_memory_v2, 2) ||
	    !is_unknown(device, result, memory->total) || !read_known_memory(&known))
		return result;
	memory->total = known.total;
	memory->reserved = 0;
	memory->free = known.free;
	memory->used = known.total - known.free;
	return NVML_SUCCESS;
}

/* --- processes ------------------------------------------------------------------------ */

/* A function that lists processes: what it is called by, and how large one of them is. */
struct lister {
	enum call call;
	enum nvml_mode mode;
	size_t size;
};

static int ask_real(const struct lister *lister, struct nvml_device *device, unsigned int *count,
		    void *processes)
{
	any_function *function = real(lister->call);

	if (!function)
		return NVML_FUNCTION_NOT_FOUND;
	if (lister->call == DETAILS) {
		struct nvml_detail_list list = {
			.version = NVML_VERSION(struct nvml_detail_list, 1),
			.mode = lister->mode,
			.count = *count,
			.array = processes,
		};
		int result = ((nvml_detail_function *)function)(device, &list);

		*count = list.count;
		return result;
	}
	return ((nvml_list_function *)function)(device, count, processes);
}

/* Any version of the structure. */
struct list {
	unsigned int count;
	size_t size;
	char *processes;
};

static struct nvml_process *process_at(const struct list *list, unsigned int i)
{
	return (struct nvml_process *)(list->processes + i * list->size);
}

static struct nvml_process *find_process(const struct list *list, unsigned int pid)
{
	unsigned int i;

	for (i = 0; i < list->count; i++)
		if (process_at(list, i)->pid == pid)
			return process_at(list, i);
	return NULL;
}

/* Copies the real library's list, with room for that many more. False if memory runs out. */
static bool read_real(const struct lister *lister, struct nvml_device *device, unsigned int more,
		      struct list *list)
{
	unsigned int room = 32;
	int result, tries;

	list->size = lister->size;
	list->processes = NULL;
	/* Others come meanwhile. */
	for (tries = 0; tries < 8; tries++) {
		char *larger = realloc(list->processes, (room + (size_t)more) * list->size);

		if (!larger)
			break;
		list->processes = larger;
		list->count = room;
		result = ask_real(lister, device, &list->count, list->processes);
		if (result != NVML_INSUFFICIENT_SIZE) {
			if (result != NVML_SUCCESS)
				list->count = 0;
			return true;
		}
		room = list->count + 32;
	}
	free(list->processes);
	list->processes = NULL;
	return false;
}

/* The same process isn't to be in two lists. */
static void forget_listed(const struct lister *lister, struct nvml_device *device,
			  struct known_processes *known)
{
	struct list list;
	size_t i;

	if (!read_real(lister, device, 0, &list))
		return;
	for (i = 0; i < known->count; i++)
		if (find_process(&list, known->all[i].pid))
			known->all[i].bytes = 0;
	free(list.processes);
}

/* Bytes that the real library lacks for its own processes. */
static void fill_in(struct list *list, struct known_processes *known)
{
	size_t i;

	for (i = 0; i < known->count; i++) {
		struct nvml_process *process = find_process(list, known->all[i].pid);

		if (!process)
			continue;
		if (process->bytes == 0 || process->bytes == NVML_NOT_AVAILABLE)
			process->bytes = known->all[i].bytes;
		known->all[i].bytes = 0;
	}
}

/* Those that it lists nowhere: umacct doesn't know what they do, and nearly all compute. */
static void add_missing(struct list *list, struct nvml_device *device,
			struct known_processes *known)
{
	static const struct lister others[] = {
		{ GRAPHICS_V3, NVML_GRAPHICS, sizeof(struct nvml_process_v2) },
		{ MPS_V3, NVML_MPS, sizeof(struct nvml_process_v2) },
	};
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		forget_listed(&others[i], device, known);
	for (i = 0; i < known->count; i++) {
		struct nvml_process *process = process_at(list, list->count);

		if (known->all[i].bytes == 0)
			continue;
		/* Everything else of it isn't known, which all of NVML writes so. */
		memset(process, 0xff, list->size);
		process->pid = known->all[i].pid;
		process->bytes = known->all[i].bytes;
		list->count++;
	}
}

static int give(const struct list *list, unsigned int room, unsigned int *count, void *processes)
{
	*count = list->count;
	if (list->count == 0)
		return NVML_SUCCESS;
	if (list->count > room || !processes)
		return NVML_INSUFFICIENT_SIZE;
	memcpy(processes, list->processes, list->count * list->size);
	return NVML_SUCCESS;
}

static bool is_device_unknown(struct nvml_device *device)
{
	struct nvml_memory memory = { 0 };

	if (has_memory(device))
		return false;
	return is_unknown(device, real_memory(device, &memory), memory.total);
}

static int list_processes(const struct lister *lister, struct nvml_device *device,
			  unsigned int *count, void *processes)
{
	const unsigned int room = count ? *count : 0;
	const int result = real(lister->call) ? ask_real(lister, device, count, processes) :
						NVML_FUNCTION_NOT_FOUND;
	const bool is_answer = result == NVML_SUCCESS || result == NVML_INSUFFICIENT_SIZE;
	const bool adds = lister->mode == NVML_COMPUTE;
	struct known_processes known;
	struct list list;
	int changed = result;

	if (!count || !(is_answer || (adds && result == NVML_NOT_SUPPORTED)) ||
	    !is_device_unknown(device) || !read_known_processes(&known))
		return result;
	if (known.count > 0 && read_real(lister, device, (unsigned int)known.count, &list)) {
		fill_in(&list, &known);
		if (adds)
			add_missing(&list, device, &known);
		changed = give(&list, room, count, processes);
		free(list.processes);
	}
	free(known.all);
	return changed;
}

#define LIST(function, call_, mode_, type)							\
	NVML_EXPORT int function(struct nvml_device *device, unsigned int *count, void *processes) \
	{											\
		static const struct lister lister = { call_, mode_, sizeof(type) };		\
												\
		return list_processes(&lister, device, count, processes);			\
	}

LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE, NVML_COMPUTE, struct nvml_process)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE_V2, NVML_COMPUTE, struct nvml_process_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE_V3, NVML_COMPUTE, struct nvml_process_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS, NVML_GRAPHICS, struct nvml_process)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS_V2, NVML_GRAPHICS, struct nvml_process_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS_V3, NVML_GRAPHICS, struct nvml_process_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS, NVML_MPS, struct nvml_process)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS_V2, NVML_MPS, struct nvml_process_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS_V3, NVML_MPS, struct nvml_process_v2)

NVML_EXPORT int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
						      struct nvml_detail_list *list)
{
	struct lister lister = { DETAILS, NVML_COMPUTE, sizeof(struct nvml_process_detail) };
	nvml_detail_function *function = (nvml_detail_function *)real(DETAILS);

	if (!function)
		return NVML_FUNCTION_NOT_FOUND;
	/* Another version, or an unknown mode, goes to the real library. */
	if (!list || list->version != NVML_VERSION(struct nvml_detail_list, 1) ||
	    list->mode >= NVML_MODES)
		return function(device, list);
	lister.mode = list->mode;
	return list_processes(&lister, device, &list->count, list->array);
}
