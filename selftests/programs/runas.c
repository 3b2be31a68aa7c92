// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * runas [-r] UID COMMAND...: runs a command as another user and group, with no capability, or
 * (-r) with CAP_DAC_READ_SEARCH alone.
 */
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int keep_read_search(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = {};
	__u32 bit = 1U << CAP_DAC_READ_SEARCH;

	sets[0].effective = sets[0].permitted = sets[0].inheritable = bit;
	return syscall(SYS_capset, &head, sets) ||
	       prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0);
}

int main(int argc, char **argv)
{
	int reads = argc > 1 && !strcmp(argv[1], "-r");
	unsigned int id;

	argv += reads;
	argc -= reads;
	if (argc < 3) {
		fprintf(stderr, "usage: runas [-r] UID COMMAND...\n");
		return 2;
	}
	id = strtoul(argv[1], NULL, 10);
	if (setgroups(0, NULL) || setgid(id) || prctl(PR_SET_KEEPCAPS, reads, 0, 0, 0) ||
	    setuid(id) || (reads && keep_read_search())) {
		perror("runas");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
