// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * failnth N FILE COMMAND...: runs a command whose N-th allocation in the kernel fails, of
 * those that the machine's failslab and fail_page_alloc ask for. Writes to FILE how many
 * were still to come: 0 where one failed. Its exit code is the command's.
 *
 * failnth N FILE load MODULE: the same, loading a module, once: busybox's insmod tries a
 * second time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_file(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
	ssize_t size = strlen(text);

	if (fd < 0)
		return -1;
	if (write(fd, text, size) != size) {
		close(fd);
		return -1;
	}
	return close(fd);
}

static int load(const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0)) {
		perror(module);
		return 1;
	}
	return 0;
}

static void run(const char *nth, char **command)
{
	if (write_file("/proc/thread-self/fail-nth", 0, nth)) {
		perror("/proc/thread-self/fail-nth");
		_exit(125);
	}
	if (!strcmp(command[0], "load") && command[1])
		_exit(load(command[1]));
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

/* The state of a zombie. */
static int left_of(pid_t pid, char *left, int size)
{
	char path[64];
	FILE *file;
	int err = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fail-nth", pid, pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fgets(left, size, file))
		err = 0;
	fclose(file);
	return err;
}

int main(int argc, char **argv)
{
	char left[32];
	siginfo_t info;
	int status;
	pid_t pid;

	if (argc < 4) {
		fprintf(stderr, "usage: %s N FILE COMMAND...\n", argv[0]);
		return 2;
	}
	pid = fork();
	if (!pid)
		run(argv[1], argv + 3);
	if (pid < 0 || waitid(P_PID, pid, &info, WEXITED | WNOWAIT) ||
	    left_of(pid, left, sizeof(left)) ||
	    write_file(argv[2], O_CREAT | O_TRUNC, left) ||
	    waitpid(pid, &status, 0) < 0) {
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
