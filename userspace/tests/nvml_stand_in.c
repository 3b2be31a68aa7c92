// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stands in for the real library in tests, on a machine with one GPU that isn't there. As a
 * GB10's it doesn't support memory, and lists processes without their bytes. What else it may
 * say is in the environment:
 *
 *   STAND_IN_TOTAL     bytes of memory, which it then supports; 0 too
 *   STAND_IN_BAR1      bytes of a window into that memory: a card
 *   STAND_IN_COMPUTE, STAND_IN_GRAPHICS
 *                      "PID" or "PID=BYTES", with commas between them
 *   STAND_IN_REFUSES   what the lists answer, as a number of NVML's
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

#define GPU	((struct nvml_device *)&is_initialized)

enum {
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
};

/* Layout of nvmlPciInfo_t. */
struct pci_info {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

static bool is_initialized;

static bool number_of(const char *variable, unsigned long long *number)
{
	const char *text = getenv(variable);

	if (text)
		*number = strtoull(text, NULL, 10);
	return text != NULL;
}

static int text_to(char *to, unsigned int room, const char *text)
{
	return snprintf(to, room, "%s", text) < (int)room ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

NVML_EXPORT int nvmlInit_v2(void)
{
	is_initialized = true;
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlInit(void)
{
	return nvmlInit_v2();
}

NVML_EXPORT int nvmlInitWithFlags(unsigned int flags)
{
	return flags == 0 ? nvmlInit_v2() : INVALID_ARGUMENT;
}

NVML_EXPORT int nvmlShutdown(void)
{
	is_initialized = false;
	return NVML_SUCCESS;
}

NVML_EXPORT const char *nvmlErrorString(int result)
{
	return result == NVML_SUCCESS ? "Success" : "Not Supported";
}

NVML_EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned int room)
{
	return text_to(version, room, "580.126.09");
}

NVML_EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 1;
	return is_initialized ? NVML_SUCCESS : UNINITIALIZED;
}

NVML_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvml_device **device)
{
	*device = GPU;
	return index == 0 ? NVML_SUCCESS : INVALID_ARGUMENT;
}

NVML_EXPORT int nvmlDeviceGetIndex(struct nvml_device *device, unsigned int *index)
{
	*index = 0;
	return device == GPU ? NVML_SUCCESS : INVALID_ARGUMENT;
}

NVML_EXPORT int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned int room)
{
	return device == GPU ? text_to(name, room, "NVIDIA GB10") : INVALID_ARGUMENT;
}

NVML_EXPORT int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned int room)
{
	return device == GPU ? text_to(uuid, room, "GPU-00000000-0000-0000-0000-000000000001") :
			       INVALID_ARGUMENT;
}

NVML_EXPORT int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct pci_info *info)
{
	memset(info, 0, sizeof(*info));
	strcpy(info->bus_id_legacy, "000F:01:00.0");
	strcpy(info->bus_id, "0000000F:01:00.0");
	info->domain = 15;
	info->bus = 1;
	return device == GPU ? NVML_SUCCESS : INVALID_ARGUMENT;
}

/* Whatever their arguments are, they aren't looked at. */
#define UNSUPPORTED(function)			\
	NVML_EXPORT int function(void)		\
	{					\
		return NVML_NOT_SUPPORTED;	\
	}

UNSUPPORTED(nvmlDeviceGetTemperature)
UNSUPPORTED(nvmlDeviceGetTemperatureThreshold)
UNSUPPORTED(nvmlDeviceGetFanSpeed)
UNSUPPORTED(nvmlDeviceGetUtilizationRates)
UNSUPPORTED(nvmlDeviceGetEncoderUtilization)
UNSUPPORTED(nvmlDeviceGetDecoderUtilization)
UNSUPPORTED(nvmlDeviceGetPowerUsage)
UNSUPPORTED(nvmlDeviceGetEnforcedPowerLimit)
UNSUPPORTED(nvmlDeviceGetClockInfo)
UNSUPPORTED(nvmlDeviceGetMaxClockInfo)
UNSUPPORTED(nvmlDeviceGetPcieThroughput)
UNSUPPORTED(nvmlDeviceGetMaxPcieLinkGeneration)
UNSUPPORTED(nvmlDeviceGetMaxPcieLinkWidth)
UNSUPPORTED(nvmlDeviceGetCurrPcieLinkGeneration)
UNSUPPORTED(nvmlDeviceGetCurrPcieLinkWidth)
UNSUPPORTED(nvmlDeviceGetProcessUtilization)

NVML_EXPORT int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1 *bar1)
{
	if (device != GPU || !number_of("STAND_IN_BAR1", &bar1->total))
		return NVML_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

static int read_memory(struct nvml_device *device, struct nvml_memory *memory)
{
	if (device != GPU || !memory)
		return INVALID_ARGUMENT;
	if (!number_of("STAND_IN_TOTAL", &memory->total))
		return NVML_NOT_SUPPORTED;
	memory->free = memory->total / 4;
	memory->used = memory->total - memory->free;
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	return read_memory(device, memory);
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device,
					   struct nvml_memory_v2 *memory)
{
	struct nvml_memory plain = { 0 };
	int result = read_memory(device, &plain);

	if (memory && result == NVML_SUCCESS) {
		memory->total = plain.total;
		memory->free = plain.free;
		memory->used = plain.used;
		memory->reserved = 0;
	}
	return result;
}

/* All versions begin with these two. */
static int list(const char *variable, struct nvml_device *device, unsigned int *count,
		void *processes, size_t size)
{
	const char *at = getenv(variable);
	unsigned long long refusal;
	unsigned int found = 0, room;

	if (device != GPU || !count)
		return INVALID_ARGUMENT;
	if (number_of("STAND_IN_REFUSES", &refusal))
		return (int)refusal;
	for (room = *count; at && *at; found++) {
		struct nvml_process process = { .bytes = NVML_NOT_AVAILABLE };
		char *end;

		process.pid = (unsigned int)strtoul(at, &end, 10);
		if (*end == '=')
			process.bytes = strtoull(end + 1, &end, 10);
		if (processes && found < room) {
			memset((char *)processes + found * size, 0xff, size);
			memcpy((char *)processes + found * size, &process, sizeof(process));
		}
		at = *end == ',' ? end + 1 : end;
	}
	*count = found;
	return found > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST(function, variable, type)								\
	NVML_EXPORT int function(struct nvml_device *device, unsigned int *count, void *processes) \
	{											\
		return list(variable, device, count, processes, sizeof(type));			\
	}

LIST(nvmlDeviceGetComputeRunningProcesses, "STAND_IN_COMPUTE", struct nvml_process)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "STAND_IN_COMPUTE", struct nvml_process_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "STAND_IN_COMPUTE", struct nvml_process_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, "STAND_IN_GRAPHICS", struct nvml_process)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "STAND_IN_GRAPHICS", struct nvml_process_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "STAND_IN_GRAPHICS", struct nvml_process_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, "STAND_IN_MPS", struct nvml_process)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, "STAND_IN_MPS", struct nvml_process_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "STAND_IN_MPS", struct nvml_process_v2)

NVML_EXPORT int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
						      struct nvml_detail_list *details)
{
	static const char *const variables[NVML_MODES] = { "STAND_IN_COMPUTE", "STAND_IN_GRAPHICS",
							   "STAND_IN_MPS" };

	if (!details || details->mode >= NVML_MODES)
		return INVALID_ARGUMENT;
	return list(variables[details->mode], device, &details->count, details->array,
		    sizeof(struct nvml_process_detail));
}

/* One that ours doesn't know. */
NVML_EXPORT int nvmlOfTomorrow(int number)
{
	return number + 1;
}
