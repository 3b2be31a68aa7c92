// SPDX-License-Identifier: GPL-2.0-or-later
/* runas UID COMMAND...: runs a command as another user and group, with no capability. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned int id;

	if (argc < 3) {
		fprintf(stderr, "usage: %s UID COMMAND...\n", argv[0]);
		return 2;
	}
	id = strtoul(argv[1], NULL, 10);
	if (setgroups(0, NULL) || setgid(id) || setuid(id)) {
		perror("runas");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
