// SPDX-License-Identifier: GPL-2.0-or-later
#include "known.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ask.h"

const char *known_root = "";

/* --- files -------------------------------------------------------------------------- */

/* The beginning of a file, as text; as much of it as there is room for. */
static bool read_file(const char *name, char *text, size_t room)
{
	char path[PATH_MAX];
	size_t length = 0;
	int fd;

	snprintf(path, sizeof(path), "%s%s", known_root, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (length < room - 1) {
		ssize_t bytes = read(fd, text + length, room - 1 - length);

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes <= 0)
			break;
		length += (size_t)bytes;
	}
	close(fd);
	text[length] = '\0';
	return length > 0;
}

static uint64_t number_at(const char *text)
{
	uint64_t number = 0;

	while (*text == ' ')
		text++;
	for (; *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	return number;
}

/* The number behind a word at the beginning of a line; 0 where there is none. */
static uint64_t number_after(const char *text, const char *word)
{
	const size_t length = strlen(word);
	const char *line = text;

	while (line && strncmp(line, word, length) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return line ? number_at(line + length) : 0;
}

/* /proc/meminfo shows what the caller's view lets it; the zones have what there is. */
uint64_t known_machine_memory(void)
{
	static const char word[] = " managed ";
	const size_t room = 256 << 10;
	char *text = malloc(room);
	uint64_t pages = 0;
	const char *at;

	if (text && read_file("/proc/zoneinfo", text, room))
		for (at = strstr(text, word); at; at = strstr(at + 1, word))
			pages += number_at(at + sizeof(word) - 1);
	free(text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- what the module says ------------------------------------------------------------ */

static uint64_t u64_of(const struct nlattr *attributes, size_t size, uint16_t type,
		       uint64_t otherwise)
{
	const void *value = ask_attribute(attributes, size, type, sizeof(uint64_t));
	uint64_t number = otherwise;

	if (value)
		memcpy(&number, value, sizeof(number));
	return number;
}

static uint32_t u32_of(const struct nlattr *attributes, size_t size, uint16_t type)
{
	const void *value = ask_attribute(attributes, size, type, sizeof(uint32_t));
	uint32_t number = 0;

	if (value)
		memcpy(&number, value, sizeof(number));
	return number;
}

struct status {
	uint32_t driver_state;
	bool tells_all;		/* the caller may see the machine's figures */
	uint64_t available;
	uint64_t reserve;
};

static void read_status(const struct nlattr *attributes, size_t size, void *to)
{
	struct status *status = to;

	status->driver_state = u32_of(attributes, size, UMACCT_A_STATUS_DRIVER_STATE);
	status->tells_all = ask_attribute(attributes, size, UMACCT_A_STATUS_AVAILABLE,
					  sizeof(uint64_t)) != NULL;
	status->available = u64_of(attributes, size, UMACCT_A_STATUS_AVAILABLE, 0);
	status->reserve = u64_of(attributes, size, UMACCT_A_STATUS_RESERVE, 0);
}

struct account {
	uint64_t id;
	uint64_t usage;
	uint64_t hard;
	uint64_t effective;
	uint64_t effective_id;
};

static void read_account(const struct nlattr *attributes, size_t size, void *to)
{
	struct account *account = to;

	account->id = u64_of(attributes, size, UMACCT_A_ACCOUNT_ID, 0);
	account->usage = u64_of(attributes, size, UMACCT_A_ACCOUNT_USAGE, 0);
	account->hard = u64_of(attributes, size, UMACCT_A_ACCOUNT_HARD, UMACCT_UNLIMITED);
	account->effective =
		u64_of(attributes, size, UMACCT_A_ACCOUNT_EFFECTIVE, UMACCT_UNLIMITED);
	account->effective_id = u64_of(attributes, size, UMACCT_A_ACCOUNT_EFFECTIVE_ID, 0);
}

/* --- limits -------------------------------------------------------------------------- */

struct limits {
	uint64_t effective;	/* the lowest hard limit */
	uint64_t left;		/* limit of the account that leaves least */
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The caller's cgroup of the v2 hierarchy, where it is mounted; empty where it can't be found. */
static void own_cgroup(char *path, size_t room, size_t *mount_length)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char text[PATH_MAX + 1024], probe[PATH_MAX];
	const char *line;
	size_t i;

	*path = '\0';
	if (!read_file("/proc/self/cgroup", text, sizeof(text)))
		return;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return;
	line = strchr(line, '/');
	/* Outside of its cgroup namespace nothing is below the mount. */
	if (!line || strncmp(line, "/..", 3) == 0)
		return;
	for (i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		snprintf(probe, sizeof(probe), "%s%s/cgroup.procs", known_root, mounts[i]);
		if (access(probe, F_OK) != 0)
			continue;
		snprintf(path, room, "%s%s%.*s", known_root, mounts[i], (int)strcspn(line, "\n"),
			 line);
		*mount_length = strlen(known_root) + strlen(mounts[i]);
		return;
	}
}

/* Goes up as far as the caller may see. */
static struct limits limits_of_self(struct ask *ask)
{
	struct limits limits = { UMACCT_UNLIMITED, UMACCT_UNLIMITED };
	struct account account, nearest = { .effective = UMACCT_UNLIMITED };
	bool found = false, sees_lowest = false;
	char path[2 * PATH_MAX];
	size_t mount_length = 0;
	struct statx cgroup;

	own_cgroup(path, sizeof(path), &mount_length);
	while (strlen(path) > mount_length) {
		char *slash = strrchr(path, '/');
		int code = -ENOENT;

		/* The C library's stat() and statx() are missing in images of 2018. */
		if (syscall(SYS_statx, AT_FDCWD, path, 0, STATX_INO, &cgroup) == 0)
			code = ask_one(ask, UMACCT_CMD_ACCOUNT_GET, UMACCT_A_ACCOUNT_ID,
				       cgroup.stx_ino, read_account, &account);
		if (code == 0) {
			nearest = found ? nearest : account;
			found = true;
			sees_lowest |= account.id == nearest.effective_id;
			if (account.hard != UMACCT_UNLIMITED)
				limits.left = less(limits.left, account.hard -
						   less(account.hard, account.usage));
		} else if (code != -ENOENT) {
			break;
		}
		/* The hierarchy's root comes last; it ends with a slash. */
		if (slash == path + mount_length && slash[1] != '\0')
			slash++;
		*slash = '\0';
	}
	limits.effective = nearest.effective;
	/* A limit that it may not see leaves no more than what it doesn't hold itself. */
	if (nearest.effective != UMACCT_UNLIMITED && !sees_lowest)
		limits.left = less(limits.left,
				   nearest.effective - less(nearest.effective, nearest.usage));
	return limits;
}

/* --- memory -------------------------------------------------------------------------- */

bool read_known_memory(struct known_memory *memory)
{
	struct status status = { 0 };
	struct limits limits;
	char text[4096];
	uint64_t total, free_now, available, apart;
	struct ask ask;

	if (!read_file("/proc/meminfo", text, sizeof(text)) || ask_open(&ask) != 0)
		return false;
	if (ask_one(&ask, UMACCT_CMD_STATUS_GET, 0, 0, read_status, &status) != 0 ||
	    status.driver_state != UMACCT_DRIVER_HOOKED) {
		ask_close(&ask);
		return false;
	}
	limits = limits_of_self(&ask);
	ask_close(&ask);

	total = number_after(text, "MemTotal:") << 10;
	free_now = number_after(text, "MemFree:") << 10;
	available = number_after(text, "MemAvailable:") << 10;
	apart = available > free_now ? available - free_now : free_now - available;
	/*
	 * A view reports available memory as free: that is the figure wanted here. Else it is
	 * the view's figure: the module's, or, for a caller that may not see that, the kernel's,
	 * less the memory that is kept for devices.
	 */
	if (apart > 1 << 20) {
		const uint64_t kept = number_after(text, "CmaFree:") << 10;

		if (status.tells_all)
			available = status.available - less(status.available, status.reserve);
		else
			available -= less(available, kept);
	}
	memory->total = less(total, limits.effective);
	memory->free = less(less(available, limits.left), memory->total);
	return memory->total > 0;
}

/* --- processes ----------------------------------------------------------------------- */

struct gathering {
	struct known_processes *processes;
	size_t room;
	bool failed;
};

static void add_process(struct gathering *into, uint32_t pid, uint64_t bytes)
{
	struct known_processes *processes = into->processes;
	size_t i;

	/* It has a client for each account that it allocated for. */
	for (i = 0; i < processes->count; i++)
		if (processes->all[i].pid == pid) {
			processes->all[i].bytes += bytes;
			return;
		}
	if (processes->count == into->room) {
		const size_t room = into->room ? 2 * into->room : 32;
		struct known_process *larger = realloc(processes->all, room * sizeof(*larger));

		if (!larger) {
			into->failed = true;
			return;
		}
		processes->all = larger;
		into->room = room;
	}
	processes->all[processes->count].pid = pid;
	processes->all[processes->count].bytes = bytes;
	processes->count++;
}

static void read_client(const struct nlattr *attributes, size_t size, void *to)
{
	const uint32_t pid = u32_of(attributes, size, UMACCT_A_CLIENT_PID);
	const uint64_t usage = u64_of(attributes, size, UMACCT_A_CLIENT_USAGE, 0);

	if (pid != 0 && usage != 0 && !ask_attribute(attributes, size, UMACCT_A_CLIENT_EXITED, 0))
		add_process(to, pid, usage);
}

bool read_known_processes(struct known_processes *processes)
{
	struct gathering into = { .processes = processes };
	int tries, code = -EINTR;
	struct ask ask;

	processes->all = NULL;
	processes->count = 0;
	if (ask_open(&ask) != 0)
		return false;
	for (tries = 0; tries < 3 && code == -EINTR; tries++) {
		processes->count = 0;
		code = ask_all(&ask, UMACCT_CMD_CLIENT_GET, read_client, &into);
	}
	ask_close(&ask);
	/* One that something changed under is as good as it gets. */
	if ((code != 0 && code != -EINTR) || into.failed) {
		free(processes->all);
		return false;
	}
	return true;
}
