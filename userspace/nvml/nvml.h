/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of NVML's ABI that the library answers itself: the functions that it has, and what they
 * take and return. NVIDIA's nvml.h is where this is from; the real library holds to it.
 */
#ifndef UMACCT_NVML_H
#define UMACCT_NVML_H

#define NVML_EXPORT __attribute__((visibility("default")))

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_FUNCTION_NOT_FOUND = 13,
};

/* Stands for unknown bytes of a process. */
#define NVML_NOT_AVAILABLE	(~0ULL)

/* A structure's member "version": its size and its number. */
#define NVML_VERSION(type, number)	((unsigned int)(sizeof(type) | (number) << 24))

/* The answer of nvmlDeviceGetVirtualizationMode() for a virtual GPU. */
#define NVML_VIRTUAL_GPU	2

struct nvml_device;

struct nvml_memory {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used;
};

struct nvml_bar1 {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
};

/* The head that all versions of a process share. */
struct nvml_process {
	unsigned int pid;
	unsigned long long bytes;
};

struct nvml_process_v2 {
	struct nvml_process process;
	unsigned int gpu_instance;
	unsigned int compute_instance;
};

struct nvml_process_detail {
	struct nvml_process process;
	unsigned int gpu_instance;
	unsigned int compute_instance;
	unsigned long long protected_bytes;
};

enum nvml_mode {
	NVML_COMPUTE,
	NVML_GRAPHICS,
	NVML_MPS,
	NVML_MODES,
};

struct nvml_detail_list {
	unsigned int version;
	unsigned int mode;	/* enum nvml_mode */
	unsigned int count;	/* room in the array, and how many there are */
	struct nvml_process_detail *array;
};

typedef int nvml_memory_function(struct nvml_device *device, struct nvml_memory *memory);
typedef int nvml_memory_v2_function(struct nvml_device *device, struct nvml_memory_v2 *memory);
typedef int nvml_bar1_function(struct nvml_device *device, struct nvml_bar1 *bar1);
typedef int nvml_number_function(struct nvml_device *device, unsigned int *number);
/* processes: an array of struct nvml_process, or of one of the later versions */
typedef int nvml_list_function(struct nvml_device *device, unsigned int *count, void *processes);
typedef int nvml_detail_function(struct nvml_device *device, struct nvml_detail_list *list);

/* NVML names these, as another style has it. */
NVML_EXPORT nvml_memory_function nvmlDeviceGetMemoryInfo; // NOLINT
NVML_EXPORT nvml_memory_v2_function nvmlDeviceGetMemoryInfo_v2; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetComputeRunningProcesses; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetComputeRunningProcesses_v2; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetComputeRunningProcesses_v3; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetGraphicsRunningProcesses; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetGraphicsRunningProcesses_v2; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetGraphicsRunningProcesses_v3; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetMPSComputeRunningProcesses; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetMPSComputeRunningProcesses_v2; // NOLINT
NVML_EXPORT nvml_list_function nvmlDeviceGetMPSComputeRunningProcesses_v3; // NOLINT
NVML_EXPORT nvml_detail_function nvmlDeviceGetRunningProcessDetailList; // NOLINT

#endif
