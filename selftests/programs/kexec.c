// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kexec KERNEL INITRD LINE: what "systemctl kexec" is to start, with that command line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int kernel, initrd;

	if (argc != 4)
		return fprintf(stderr, "usage: kexec KERNEL INITRD LINE\n"), 2;
	kernel = open(argv[1], O_RDONLY);
	initrd = open(argv[2], O_RDONLY);
	if (kernel < 0 || initrd < 0)
		return perror("kexec: open"), 1;
	/* The size is with the line's end. */
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(argv[3]) + 1, argv[3], 0UL))
		return perror("kexec"), 1;
	return 0;
}
