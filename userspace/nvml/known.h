/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory as umacct knows it, as far as the calling process may see it. All of it is asked
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

/* The figures of a view: see docs/limits.md. */
struct known_memory {
	uint64_t total;	/* bytes; never less than free */
	uint64_t free;
};

bool read_known_memory(struct known_memory *memory);

struct known_process {
	unsigned int pid;	/* its pid in the caller's namespace */
	uint64_t bytes;		/* bytes in all accounts, as in "umacct ps" */
};

struct known_processes {
	struct known_process *all;	/* the caller frees it */
	size_t count;
};

/* Those that live, hold memory, and have a pid in the caller's namespace. */
bool read_known_processes(struct known_processes *processes);

/* The machine's figure, not a view's; 0 if unknown. */
uint64_t known_machine_memory(void);

/* Folder of /proc and /sys; empty except in tests. */
extern const char *known_root;

#ifdef __cplusplus
}
#endif

#endif
