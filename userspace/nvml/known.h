/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What umacct knows of the memory, as far as the calling process may see it. All of it is asked
 * anew each time; nothing is kept open. False is the answer where the module isn't loaded or
 * can't be asked, or nothing accounts: what the real library says stays then.
 */
#ifndef UMACCT_NVML_KNOWN_H
#define UMACCT_NVML_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As a view has it: see docs/limits.md. */
struct known_memory {
	uint64_t total;	/* bytes; never less than free */
	uint64_t free;
};

bool read_known_memory(struct known_memory *memory);

struct known_process {
	unsigned int pid;	/* in the caller's pid namespace */
	uint64_t bytes;		/* for all accounts, as "umacct ps" has them */
};

struct known_processes {
	struct known_process *all;	/* the caller frees it */
	size_t count;
};

/* Those that live, hold memory, and have a pid in the caller's namespace. */
bool read_known_processes(struct known_processes *processes);

/* Of the machine, whatever view the caller has of it; 0 where that isn't known. */
uint64_t known_machine_memory(void);

/* Where /proc and /sys are; empty but in tests. */
extern const char *known_root;

#ifdef __cplusplus
}
#endif

#endif
