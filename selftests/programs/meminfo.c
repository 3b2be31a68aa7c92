// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * meminfo: the machine's memory as a program sees it, by each of the
 * ways it may ask. One line each, in bytes:
 *
 *	sysinfo TOTAL FREE
 *	meminfo TOTAL FREE AVAILABLE
 *	node0 TOTAL FREE
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

struct field {
	const char *name;
	unsigned long long kib;
};

static void read_fields(const char *path, struct field *fields, int count)
{
	FILE *file = fopen(path, "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		for (int i = 0; i < count; i++) {
			const char *found = strstr(line, fields[i].name);

			if (found)
				sscanf(found + strlen(fields[i].name), "%llu", &fields[i].kib);
		}
	}
	if (file)
		fclose(file);
}

static void print_file(const char *label, const char *path, int count)
{
	struct field fields[] = { { "MemTotal:", 0 }, { "MemFree:", 0 }, { "MemAvailable:", 0 } };

	read_fields(path, fields, count);
	printf("%s", label);
	for (int i = 0; i < count; i++)
		printf(" %llu", fields[i].kib << 10);
	printf("\n");
}

int main(void)
{
	struct sysinfo info;

	if (sysinfo(&info)) {
		perror("sysinfo");
		return 1;
	}
	printf("sysinfo %llu %llu\n", (unsigned long long)info.totalram * info.mem_unit,
	       (unsigned long long)info.freeram * info.mem_unit);
	print_file("meminfo", "/proc/meminfo", 3);
	print_file("node0", "/sys/devices/system/node/node0/meminfo", 2);
	return 0;
}
