// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The drivers' functions are hooked by kprobe events in tracefs, and the programs attached to those,
 * for three reasons: an event can be made before its module is loaded, and outlives the module's
 * reloading, which it isn't in the way of; kretprobes can be given as many instances as tasks may be
 * in a function at once; and the kernel counts the calls that an event has missed.
 */
#include "start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "hooks/driver_versions.h"
#include "observer.h"
#include "observer.skel.h"

/* maxactive of kretprobes: tasks that may be within one function. The kernel allows no more. */
#define RETURNS		4096

/*
 * The events' group, which their names begin with. The module has one of its own name in tracefs.
 * Of an observer that is held, the pid of its holder follows.
 */
#define GROUP		"umacct_observer"

/* How long the kernel may take to let go of an event, in steps of 10 ms. */
#define PATIENCE	1000

/* Number of comparisons of hits and runs, until they are of one moment. */
#define READINGS	20

/* The hooked functions. Frees come before allocations: what is recorded is sure to be seen going. */
static const struct place {
	enum observer_place index;
	const char *name;
	const char *event;
	const char *symbol;
	const char *entry;
	const char *ret;	/* program at its return; NULL for none */
	bool required;
} places[] = {
	/* rm_init_adapter() itself is in the part of the driver that has no place for a probe. */
	{ OBSERVER_OPEN_DEVICE, "initialise adapter", "init_adapter", "nvidia:nv_open_device",
	  "start_entry", "start_return", false },
	{ OBSERVER_RETAIN_GPU, "set up GPU for managed memory", "retain_gpu",
	  "nvidia_uvm:uvm_gpu_retain_by_uuid", "start_entry", "start_return", false },
	{ OBSERVER_FREE, "free", "free", "nvidia:nv_free_system_pages", "free_entry", NULL,
	  true },
	{ OBSERVER_FREE_CONTIGUOUS, "free contiguous", "free_contig", "nvidia:nv_free_contig_pages",
	  "free_entry", NULL, true },
	{ OBSERVER_ALLOC, "allocate", "alloc", "nvidia:nv_alloc_pages", "alloc_pages_entry",
	  "call_return", true },
	{ OBSERVER_UNREGISTER, "unregister memory", "unlock_pages", "nvidia:os_unlock_user_pages",
	  "free_entry", NULL, false },
	{ OBSERVER_REGISTER, "register memory", "lock_pages", "nvidia:os_lock_user_pages",
	  "register_entry", "call_return", false },
	{ OBSERVER_FREE_POOL, "free UVM pool", "free_pool", "nvidia_uvm:uvm_mem_free",
	  "free_entry", NULL, false },
	{ OBSERVER_POOL, "allocate UVM pool", "pool", "nvidia_uvm:uvm_mem_alloc", "pool_entry",
	  "call_return", false },
	{ OBSERVER_FREE_CHUNK, "free managed", "free_chunk", "nvidia_uvm:cpu_chunk_release",
	  "free_entry", NULL, true },
	{ OBSERVER_CHUNK, "allocate managed", "chunk", "nvidia_uvm:uvm_cpu_chunk_alloc",
	  "chunk_entry", "call_return", true },
};

#define PLACES		(sizeof(places) / sizeof(places[0]))
_Static_assert(PLACES == OBSERVER_HOOKS, "each has a row");

struct observer {
	struct observer_bpf *bpf;
	struct observer_maps maps;
	const char *folder;	/* NULL where nothing is pinned */
	char group[32];
	bool taken;		/* another observer's programs are in the folder */
	int remover;		/* keeps the events while it is open */
	unsigned int records;
	char *why;
	size_t size;
	struct bpf_link *links[2 * PLACES + 2];
	size_t nr_links;
};

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

__attribute__((format(printf, 2, 3)))
static bool failed(struct observer *observer, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(observer->why, observer->size, format, args);
	va_end(args);
	return false;
}

/* --- events ------------------------------------------------------------------- */

static const char *tracefs(void)
{
	static const char *const folders[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/kprobe_events", folders[i]);
		if (access(path, W_OK) == 0)
			return folders[i];
	}
	return NULL;
}

/* Returns 0 or a negative errno. */
static int write_event(const char *text)
{
	char path[PATH_MAX];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/kprobe_events", tracefs());
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Removes the events of a group. The kernel lets go of one some time after its last user has. */
static void remove_events(const char *group)
{
	const struct timespec step = { .tv_nsec = 10000000 };
	char text[NAME_MAX + 8];
	int i;

	snprintf(text, sizeof(text), "-:%s/", group);
	for (i = 0; i < PATIENCE && write_event(text) == -EBUSY; i++)
		nanosleep(&step, NULL);
}

/* Those of holders that were ended together with the process that removes them. */
static void remove_orphans(void)
{
	char path[PATH_MAX], group[NAME_MAX + 1];
	const struct dirent *entry;
	int holder;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/events", tracefs());
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, GROUP "_%d", &holder) != 1 || kill(holder, 0) == 0 ||
		    errno != ESRCH)
			continue;
		snprintf(group, sizeof(group), "%s", entry->d_name);
		remove_events(group);
	}
	closedir(dir);
}

/*
 * Starts a process that removes a held observer's events once its holder is gone, however it ended.
 * It is in no group that a signal is sent to, need not be waited for, and inherits no file of the
 * holder's, which would keep the programs running.
 */
static bool start_remover(struct observer *observer)
{
	int ends[2], status;
	sigset_t all;
	pid_t pid;
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return failed(observer, "there is no pipe: %s", strerror(errno));
	observer->remover = ends[1];
	pid = fork();
	if (pid == 0) {
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		setsid();
		if (fork() || chdir("/") || dup2(ends[0], STDIN_FILENO) ||
		    close_range(STDIN_FILENO + 1, ~0U, 0))
			_exit(0);
		prctl(PR_SET_NAME, "umacct-events");
		while (read(STDIN_FILENO, &byte, 1) < 0)
			;
		remove_events(observer->group);
		_exit(0);
	}
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 ? true : failed(observer, "there is no process: %s", strerror(errno));
}

static int event_id(const struct observer *observer, const char *name)
{
	char path[PATH_MAX];
	FILE *file;
	int id = -1;

	snprintf(path, sizeof(path), "%s/events/%s/%s/id", tracefs(), observer->group, name);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &id) != 1)
		id = -1;
	fclose(file);
	return id;
}

/* Returns an event's number of hits, by all that the kernel counts. */
static bool hits_of(const char *event, __u64 *hits)
{
	char path[PATH_MAX], name[NAME_MAX + 1];
	unsigned long long found, missed;
	FILE *file;
	bool is_there = false;

	snprintf(path, sizeof(path), "%s/kprobe_profile", tracefs());
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!is_there && fscanf(file, "%255s %llu %llu", name, &found, &missed) == 3)
		is_there = !strcmp(name, event);
	fclose(file);
	*hits = found;
	return is_there;
}

/* How often the program ran for one of its places. */
static bool runs_at(const struct observer *observer, __u32 place, __u64 *runs)
{
	const int processors = libbpf_num_possible_cpus();
	__u64 *values;
	bool read;
	int i;

	if (processors <= 0)
		return false;
	values = calloc((size_t)processors, sizeof(*values));
	if (!values)
		return false;
	read = !bpf_map_lookup_elem(observer->maps.runs, &place, values);
	for (*runs = 0, i = 0; i < processors; i++)
		*runs += values[i];
	free(values);
	return read;
}

/*
 * Hits before the program was attached are of what was allocated before, not missed. Each reading
 * is of a moment of its own: it counts where no hit came in between.
 */
static __u64 skipped_before(const struct observer *observer, const char *event, __u32 place)
{
	__u64 before = 0, after = 0, runs = 0;
	int i;

	for (i = 0; i < READINGS; i++) {
		if (!hits_of(event, &before) || !before)
			return 0;
		/* Those that are under way end. */
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		if (!runs_at(observer, place, &runs) || !hits_of(event, &after))
			return 0;
		if (before == after)
			break;
	}
	return after > runs ? after - runs : 0;
}

/* --- attaching ---------------------------------------------------------------- */

static bool keep(struct observer *observer, struct bpf_link *link, const char *name)
{
	char path[PATH_MAX];
	int err = 0;

	if (observer->folder) {
		snprintf(path, sizeof(path), "%s/link_%s", observer->folder, name);
		err = bpf_link__pin(link, path);
	}
	if (err) {
		observer->taken = err == -EEXIST;
		bpf_link__destroy(link);
		return failed(observer, "%s can't be made: %s", path, strerror(-err));
	}
	observer->links[observer->nr_links++] = link;
	return true;
}

/* Makes an event and attaches a program to it. Sets *error where there is no such function. */
static bool attach(struct observer *observer, const struct place *place, bool at_return,
		   struct observer_hook *row, int *error)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(observer->bpf->obj,
						 at_return ? place->ret : place->entry);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.wakeup_events = 1,
	};
	char event[64], text[256], kind[16] = "p";
	/* A program learns from the cookie which hook it runs at. */
	LIBBPF_OPTS(bpf_perf_event_opts, options,
		    .bpf_cookie = place->index + (at_return ? OBSERVER_HOOKS : 0));
	struct bpf_link *link;
	int fd, id;

	if (at_return)
		snprintf(kind, sizeof(kind), "r%d", RETURNS);
	snprintf(event, sizeof(event), "%s%s", row->event, at_return ? "_ret" : "");
	snprintf(text, sizeof(text), "%s:%s/%s %s", kind, observer->group, event, place->symbol);
	*error = -write_event(text);
	if (*error)
		return true;
	id = event_id(observer, event);
	if (id < 0)
		return failed(observer, "tracefs has no id for the event %s", event);
	attr.config = (__u64)id;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return failed(observer, "the event %s can't be opened: %s", event, strerror(errno));
	link = bpf_program__attach_perf_event_opts(program, fd, &options);
	if (!link) {
		failed(observer, "a program can't be attached to %s: %s", event, strerror(errno));
		close(fd);
		return false;
	}
	row->skipped[at_return] = skipped_before(observer, event, (__u32)options.bpf_cookie);
	return keep(observer, link, event);
}

static bool hook(struct observer *observer, const struct place *place)
{
	struct observer_hook row = {
		.required = place->required,
		.has_return = place->ret != NULL,
	};
	const __u32 index = place->index;
	int error = 0;

	snprintf(row.name, sizeof(row.name), "%s", place->name);
	snprintf(row.symbol, sizeof(row.symbol), "%s", place->symbol);
	/* The kernel's table of hits and misses has the events of all, by their names alone. */
	snprintf(row.event, sizeof(row.event), "%s_%s", observer->group, place->event);
	/* The return first: an entry whose return isn't seen would be in no account. */
	if (place->ret && !attach(observer, place, true, &row, &error))
		return false;
	if (!error && !attach(observer, place, false, &row, &error))
		return false;
	row.error = (__u32)error;
	if (bpf_map_update_elem(observer->maps.hooks, &index, &row, BPF_ANY))
		return failed(observer, "the map of hooks can't be written: %s", strerror(errno));
	return true;
}

/* Attaches a program to a tracepoint. */
static bool follow(struct observer *observer, const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);
	struct bpf_link *link = bpf_program__attach(program);

	if (!link)
		return failed(observer, "the tracepoint %s can't be followed: %s", name,
			      strerror(errno));
	return keep(observer, link, name);
}

/* --- starting ----------------------------------------------------------------- */

/* Finds the series of a loaded driver, and its layouts. Other drivers are looked at later. */
static __u32 identify(struct series *driver, const char *module)
{
	static const struct series known[] = KNOWN_SERIES;
	char path[PATH_MAX];
	FILE *file;
	__u32 number = 0;
	size_t i;

	snprintf(path, sizeof(path), "/sys/module/%s/version", module);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%u", &number) != 1)
		number = 0;
	fclose(file);
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (number >= known[i].first && number <= known[i].last)
			*driver = known[i];
	return number;
}

static bool begin(struct observer *observer)
{
	struct observer_totals totals = {
		.version = OBSERVER_VERSION,
		.root.refs = 1,
		.nvidia_series = identify(&observer->bpf->bss->drivers[0], "nvidia"),
		.uvm_series = identify(&observer->bpf->bss->drivers[1], "nvidia_uvm"),
	};
	struct timespec now;
	__u32 zero = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	totals.since_ns = (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
	if (bpf_map_update_elem(observer->maps.totals, &zero, &totals, BPF_ANY))
		return failed(observer, "the maps can't be written: %s", strerror(errno));
	return true;
}

/* Mounts bpffs where systemd does at boot, and bpftool otherwise. */
static bool mount_bpffs(struct observer *observer)
{
	char place[PATH_MAX];
	struct statfs there;
	char *name;

	snprintf(place, sizeof(place), "%s", observer->folder);
	name = strrchr(place, '/');
	if (name)
		*name = '\0';
	if (statfs(place, &there))
		return failed(observer, "%s can't be looked at: %s; has the kernel no BPF file system?",
			      place, strerror(errno));
	if (there.f_type == BPF_FS_MAGIC)
		return true;
	if (mount("bpf", place, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700"))
		return failed(observer, "no bpffs is mounted at %s, and it can't be: %s", place,
			      strerror(errno));
	return true;
}

static bool pin(struct observer *observer, int fd, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", observer->folder, name);
	if (!bpf_obj_pin(fd, path))
		return true;
	observer->taken = errno == EEXIST;
	return failed(observer, "%s can't be made: %s", path, strerror(errno));
}

/* All but the totals, which are pinned when all is hooked: who finds them finds it complete. */
static bool pin_maps(struct observer *observer)
{
	const struct observer_maps *maps = &observer->maps;

	if (mkdir(observer->folder, 0700) && errno != EEXIST)
		return failed(observer, "%s can't be made: %s", observer->folder, strerror(errno));
	return pin(observer, maps->accounts, "accounts") &&
	       pin(observer, maps->clients, "clients") &&
	       pin(observer, maps->records, "records") && pin(observer, maps->hooks, "hooks") &&
	       pin(observer, maps->runs, "runs");
}

static bool start(struct observer *observer)
{
	__u32 i, page_shift = 0;
	struct timespec tick = { 0 };
	long page;
	int err;

	if (!tracefs())
		return failed(observer, "tracefs is not mounted, or has no kprobe events: mount -t tracefs tracefs /sys/kernel/tracing");
	remove_orphans();
	remove_events(observer->group);
	/* Started first: it would inherit the programs, too. */
	if (!observer->folder && !start_remover(observer))
		return false;
	observer->bpf = observer_bpf__open();
	if (!observer->bpf)
		return failed(observer, "the BPF programs can't be opened: %s", strerror(errno));
	for (page = sysconf(_SC_PAGESIZE); page > 1; page >>= 1)
		page_shift++;
	observer->bpf->rodata->page_shift = page_shift;
	/* The resolution of that clock is a tick. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	observer->bpf->rodata->tick_ns = (__u64)tick.tv_nsec;
	err = bpf_map__set_max_entries(observer->bpf->maps.records, observer->records);
	if (!err)
		err = observer_bpf__load(observer->bpf);
	if (err)
		return failed(observer, "the kernel doesn't take the BPF programs: %s%s", strerror(-err),
			      err == -EPERM ? " (is it locked down for confidentiality?)" : "");
	observer->maps.accounts = bpf_map__fd(observer->bpf->maps.accounts);
	observer->maps.clients = bpf_map__fd(observer->bpf->maps.clients);
	observer->maps.records = bpf_map__fd(observer->bpf->maps.records);
	observer->maps.totals = bpf_map__fd(observer->bpf->maps.totals);
	observer->maps.hooks = bpf_map__fd(observer->bpf->maps.hooks);
	observer->maps.runs = bpf_map__fd(observer->bpf->maps.runs);
	if (!begin(observer) ||
	    (observer->folder && (!mount_bpffs(observer) || !pin_maps(observer))))
		return false;
	if (!follow(observer, observer->bpf->progs.cgroup_rmdir) ||
	    !follow(observer, observer->bpf->progs.module_load))
		return false;
	for (i = 0; i < PLACES; i++)
		if (!hook(observer, &places[i]))
			return false;
	return !observer->folder || pin(observer, observer->maps.totals, "totals");
}

static void end(struct observer *observer)
{
	size_t i;

	for (i = 0; i < observer->nr_links; i++) {
		/* Pinned links stay. */
		if (observer->folder)
			bpf_link__disconnect(observer->links[i]);
		bpf_link__destroy(observer->links[i]);
	}
	if (observer->bpf)
		observer_bpf__destroy(observer->bpf);
	if (observer->remover >= 0)
		close(observer->remover);
}

int umacct_observer_begin(const char *folder, unsigned int records, char *why, size_t size)
{
	struct observer observer = {
		.folder = folder,
		.group = GROUP,
		.remover = -1,
		.records = records,
		.why = why,
		.size = size,
	};
	bool begun;

	libbpf_set_print(silent);
	begun = start(&observer);
	end(&observer);
	if (begun)
		return 0;
	if (!observer.taken)
		umacct_observer_end(folder);
	return -1;
}

struct observer *umacct_observer_hold(unsigned int records, struct observer_maps *maps, char *why,
				      size_t size)
{
	struct observer *observer = calloc(1, sizeof(*observer));

	if (!observer) {
		snprintf(why, size, "%s", strerror(errno));
		return NULL;
	}
	*observer = (struct observer){
		.remover = -1, .records = records, .why = why, .size = size,
	};
	snprintf(observer->group, sizeof(observer->group), GROUP "_%d", getpid());
	libbpf_set_print(silent);
	if (start(observer)) {
		*maps = observer->maps;
		return observer;
	}
	umacct_observer_release(observer);
	return NULL;
}

void umacct_observer_release(struct observer *observer)
{
	end(observer);
	free(observer);
}

int umacct_observer_end(const char *folder)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *dir = opendir(folder);
	int err = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (unlink(path))
			err = -errno;
	}
	closedir(dir);
	/* An empty folder, and unused events, do no harm where a service may not remove them. */
	rmdir(folder);
	if (!err && tracefs())
		remove_events(GROUP);
	return err;
}
