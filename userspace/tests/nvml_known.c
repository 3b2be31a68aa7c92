// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stands in for nvml/known.c in nvml_test.cpp: umacct's figures are in the environment.
 * KNOWN_TOTAL, KNOWN_FREE and KNOWN_MACHINE are bytes; KNOWN_PROCESSES is "PID=BYTES", with
 * commas between them. Where a variable isn't set, umacct isn't there.
 */
#include "known.h"

#include <stdlib.h>

const char *known_root = "";

static bool number_of(const char *variable, uint64_t *number)
{
	const char *text = getenv(variable);

	if (text)
		*number = strtoull(text, NULL, 10);
	return text != NULL;
}

uint64_t known_machine_memory(void)
{
	uint64_t bytes = 0;

	number_of("KNOWN_MACHINE", &bytes);
	return bytes;
}

bool read_known_memory(struct known_memory *memory)
{
	return number_of("KNOWN_TOTAL", &memory->total) && number_of("KNOWN_FREE", &memory->free);
}

bool read_known_processes(struct known_processes *processes)
{
	const char *at = getenv("KNOWN_PROCESSES");

	processes->count = 0;
	processes->all = at ? calloc(64, sizeof(*processes->all)) : NULL;
	while (processes->all && *at) {
		struct known_process *process = &processes->all[processes->count++];
		char *end;

		process->pid = (unsigned int)strtoul(at, &end, 10);
		process->bytes = strtoull(end + 1, &end, 10);
		at = *end == ',' ? end + 1 : end;
	}
	return processes->all != NULL;
}
