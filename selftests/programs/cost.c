// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cost COMMAND...: what a command takes, its output thrown away. It is run twice, for
 * its time in nanoseconds, which are instructions under QEMU's icount, and for its
 * system calls, those of its children not among them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static pid_t start(char **command, int traced)
{
	pid_t pid = fork();
	int null;

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	null = open("/dev/null", O_WRONLY);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
		die("/dev/null");
	if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("ptrace");
	execvp(command[0], command);
	die(command[0]);
	return 0;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid");
	}
	return status;
}

static void check_end(int status)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "cost: the command failed\n");
		exit(1);
	}
}

static long long time_of(char **command)
{
	long long begin = now();

	check_end(wait_for(start(command, 0)));
	return now() - begin;
}

/* Each call stops the command twice: when it enters and when it leaves the kernel. */
static long calls_of(char **command)
{
	pid_t pid = start(command, 1);
	int status = wait_for(pid), signal = 0;
	long stops = 0;

	if (!WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		die("ptrace");
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, signal))
			die("ptrace");
		status = wait_for(pid);
		if (!WIFSTOPPED(status))
			break;
		signal = WSTOPSIG(status);
		if (signal == (SIGTRAP | 0x80)) {
			stops++;
			signal = 0;
		}
	}
	check_end(status);
	return (stops + 1) / 2;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: cost COMMAND...\n");
		return 2;
	}
	printf("%lld", time_of(argv + 1));
	printf(" %ld\n", calls_of(argv + 1));
	return 0;
}
