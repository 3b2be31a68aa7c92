// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kexec KERNEL INITRD: what "systemctl kexec" is to start, with this kernel's command line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char line[4096] = "";
	int kernel, initrd, own;
	ssize_t size;

	if (argc != 3)
		return fprintf(stderr, "usage: kexec KERNEL INITRD\n"), 2;
	kernel = open(argv[1], O_RDONLY);
	initrd = open(argv[2], O_RDONLY);
	own = open("/proc/cmdline", O_RDONLY);
	if (kernel < 0 || initrd < 0 || own < 0)
		return perror("kexec: open"), 1;
	size = read(own, line, sizeof(line) - 1);
	if (size < 1)
		return perror("kexec: /proc/cmdline"), 1;
	line[size - 1] = '\0'; /* the line's end */
	if (syscall(SYS_kexec_file_load, kernel, initrd, (unsigned long)size, line, 0UL))
		return perror("kexec"), 1;
	return 0;
}
