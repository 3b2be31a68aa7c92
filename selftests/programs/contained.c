// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * contained [--no-admin] UID COMMAND...: runs a command as the root of namespaces of its
 * own, as a container has them, that the user UID has made: of users, processes, mounts,
 * networks, cgroups, IPC and host names. /proc, /sys and /sys/fs/cgroup are its own; /mnt is
 * what /sys is outside, as for who was given too much. With --no-admin that root lacks
 * CAP_SYS_ADMIN, as runtimes have it. Ends as the command does, or with 126 or 127.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#define NAMESPACES	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | \
			 CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWUTS)

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(126);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd))
		die(path);
}

static void be_user(unsigned int id)
{
	if (getuid() != id && (setgroups(0, NULL) || setgid(id) || setuid(id)))
		die("setuid");
	/* Whoever changes his user can't write his own files in /proc otherwise. */
	if (prctl(PR_SET_DUMPABLE, 1))
		die("prctl");
}

static void enter_namespaces(unsigned int id)
{
	char map[32];

	if (unshare(NAMESPACES))
		die("unshare");
	snprintf(map, sizeof(map), "0 %u 1", id);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", map);
	write_file("/proc/self/gid_map", map);
}

static void mount_own(void)
{
	if (mount("/sys", "/mnt", NULL, MS_BIND | MS_REC, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
	    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL))
		die("mount");
}

int main(int argc, char **argv)
{
	bool admin = argc < 2 || strcmp(argv[1], "--no-admin");
	unsigned int id;
	int status;
	pid_t pid;

	if (!admin) {
		argv++;
		argc--;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: contained [--no-admin] UID COMMAND...\n");
		return 2;
	}
	id = strtoul(argv[1], NULL, 10);
	be_user(id);
	enter_namespaces(id);
	/* The first child is the first process of the new namespace. */
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		mount_own();
		/* Exec gives a root what this does not bound. */
		if (!admin && prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN))
			die("prctl");
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
