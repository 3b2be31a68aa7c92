// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * manycgroups make COUNT: makes that many cgroups below /many, a hundred in each of its
 * children.
 *
 * manycgroups hold COUNT PAGES: takes that many pages of driver memory in each of them, one
 * by one, says "ready", and holds all of it until its standard input ends.
 *
 * manycgroups control COUNT: gives each the memory controller.
 *
 * manycgroups read COUNT: reads memory.current of each of them.
 *
 * manycgroups remove COUNT: removes them, all but the one that the holder is in.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP		"/sys/fs/cgroup/many"
#define IN_EACH		100

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static const char *path(const char *format, ...)
{
	static char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

static void make(const char *directory)
{
	if (mkdir(directory, 0755) && errno != EEXIST)
		die(directory);
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(file);
	close(fd);
}

static void make_each(int count)
{
	make(TOP);
	for (int i = 0; i < count; i++) {
		if (i % IN_EACH == 0)
			make(path(TOP "/%d", i / IN_EACH));
		make(path(TOP "/%d/%d", i / IN_EACH, i));
	}
}

static void control_each(int count)
{
	put(TOP "/cgroup.subtree_control", "+memory");
	for (int i = 0; i < count; i += IN_EACH)
		put(path(TOP "/%d/cgroup.subtree_control", i / IN_EACH), "+memory");
}

static void hold(int count, int pages)
{
	int device = open("/dev/umacct_test_alloc", O_RDWR);
	char command[64], wanted[64], answer[256];

	if (device < 0)
		die("/dev/umacct_test_alloc");
	snprintf(command, sizeof(command), "alloc 1 4096 0 %d", pages);
	snprintf(wanted, sizeof(wanted), "status=0x0 count=%d\n", pages);
	for (int i = 0; i < count; i++) {
		put(path(TOP "/%d/%d/cgroup.procs", i / IN_EACH, i), "0");
		if (write(device, command, strlen(command)) < 0)
			die("alloc");
		if (read(device, answer, sizeof(answer)) <= 0 ||
		    strncmp(answer, wanted, strlen(wanted)))
			die("alloc");
	}
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static void read_each(int count)
{
	char text[64];
	int fd;

	for (int i = 0; i < count; i++) {
		fd = open(path(TOP "/%d/%d/memory.current", i / IN_EACH, i), O_RDONLY);
		if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
			die("memory.current");
		close(fd);
	}
}

static void remove_each(int count)
{
	for (int i = 0; i < count; i++)
		if (rmdir(path(TOP "/%d/%d", i / IN_EACH, i)) && errno != EBUSY)
			die("rmdir");
	for (int i = 0; i < count / IN_EACH; i++)
		if (rmdir(path(TOP "/%d", i)) && errno != EBUSY)
			die("rmdir");
}

int main(int argc, char **argv)
{
	int count = argc >= 3 ? atoi(argv[2]) : 0;

	if (count > 0 && argc == 4 && !strcmp(argv[1], "hold"))
		hold(count, atoi(argv[3]));
	else if (count > 0 && !strcmp(argv[1], "make"))
		make_each(count);
	else if (count > 0 && !strcmp(argv[1], "control"))
		control_each(count);
	else if (count > 0 && !strcmp(argv[1], "read"))
		read_each(count);
	else if (count > 0 && !strcmp(argv[1], "remove"))
		remove_each(count);
	else
		return fprintf(stderr, "usage: manycgroups make|control|read|remove COUNT\n"
			       "       manycgroups hold COUNT PAGES\n"), 2;
	return 0;
}
