// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The drivers' functions are hooked by kprobe events in tracefs, and the programs attached to those,
 * for three reasons: an event can be made before its module is loaded, and outlives the module's
 * reloading, which it isn't in the way of; kretprobes can be given as many instances as tasks may be
 * in a function at once; and the kernel tells how many calls an event has missed.
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

/* Of kretprobes: as many tasks as may be within one function. The kernel allows no more. */
#define RETURNS		4096

/*
 * The events' group, which their names begin with. The module has one of its own name in tracefs.
 * Of an observer that is held, the pid of its holder follows.
 */
#define GROUP		"umacct_observer"

/* How long the kernel may take to let go of an event, in steps of 10 ms. */
#define PATIENCE	1000

/* So often hits and runs are compared, until they are of one moment. */
#define READINGS	20

/* A hooked function. Frees come before allocations: what is recorded is sure to be seen going. */
static const struct place {
	const char *name;
	const char *event;
	const char *symbol;
	const char *entry;
	const char *ret;	/* program at its return; NULL for none */
	bool required;
	enum observer_call_of call;
	/* What the return is of, where it isn't the same function: the first that the kernel has. */
	const char *ret_symbols[2];
	/* Program at the entry of that, in place of the symbol's, where it is known who calls it. */
	const char *caller_entry;
	/* Program by fentry, in place of all this, where the kernel can do that. */
	const char *traced;
	const char *traced_symbol;
} places[] = {
	{ "load driver", "init_module", "do_init_module", "init_module_entry", "start_return", false,
	  .call = OBSERVER_CALL_NONE },
	/* rm_init_adapter() itself is in the part of the driver that has no place for a probe. */
	{ "initialise adapter", "init_adapter", "nvidia:nv_open_device", "start_entry",
	  "start_return", false, .call = OBSERVER_CALL_NONE },
	{ "set up GPU for managed memory", "retain_gpu", "nvidia_uvm:uvm_gpu_retain_by_uuid",
	  "start_entry", "start_return", false, .call = OBSERVER_CALL_NONE },
	{ "free", "free", "nvidia:nv_free_system_pages", "free_pages_entry", NULL, true,
	  .call = OBSERVER_CALL_NONE },
	{ "free contiguous", "free_contig", "nvidia:nv_free_contig_pages", "free_pages_entry", NULL,
	  true, .call = OBSERVER_CALL_NONE },
	{ "allocate", "alloc", "nvidia:nv_alloc_pages", "alloc_pages_entry", "alloc_pages_return",
	  true, .call = OBSERVER_CALL_ALLOC },
	{ "free metadata", "os_free", "nvidia:os_free_mem", "free_large_entry", NULL, false,
	  .call = OBSERVER_CALL_NONE, .traced = "vfree_entry", .traced_symbol = "vfree" },
	{ "allocate metadata", "os_alloc", "nvidia:os_alloc_mem", "os_alloc_entry",
	  "os_vmalloc_return", false, .call = OBSERVER_CALL_OS_MEM,
	  .ret_symbols = { "__vmalloc_noprof", "__vmalloc" }, .caller_entry = "vmalloc_entry" },
	{ "close device", "close", "nvidia:nvidia_close", "free_second_entry", NULL, false,
	  .call = OBSERVER_CALL_NONE },
	{ "open device", "open", "nvidia:nvidia_open", "file_entry", "file_return", false,
	  .call = OBSERVER_CALL_FILE },
	{ "remove client", "free_client", "nvidia:os_put_pid_info", "free_client_entry", NULL, false,
	  .call = OBSERVER_CALL_NONE },
	{ "make client", "client", "nvidia:os_get_pid_info", "client_entry", "client_return", false,
	  .call = OBSERVER_CALL_CLIENT },
	{ "unregister memory", "unlock_pages", "nvidia:os_unlock_user_pages", "free_second_entry",
	  NULL, false, .call = OBSERVER_CALL_NONE },
	{ "register memory", "lock_pages", "nvidia:os_lock_user_pages", "lock_pages_entry",
	  "lock_pages_return", false, .call = OBSERVER_CALL_USER_PAGES },
	{ "free UVM metadata", "kvfree", "nvidia_uvm:uvm_kvfree", "free_large_entry", NULL, false,
	  .call = OBSERVER_CALL_NONE },
	{ "resize UVM metadata", "kvrealloc", "nvidia_uvm:__uvm_kvrealloc", "kvrealloc_entry",
	  "kvrealloc_return", false, .call = OBSERVER_CALL_KVREALLOC },
	{ "allocate UVM metadata", "kvmalloc", "nvidia_uvm:__uvm_kvmalloc", "kvmalloc_entry",
	  "uvm_vmalloc_return", false, .call = OBSERVER_CALL_KVMALLOC,
	  .ret_symbols = { "vmalloc_noprof", "vmalloc" } },
	{ "allocate UVM metadata", "kvmalloc_zero", "nvidia_uvm:__uvm_kvmalloc_zero",
	  "kvmalloc_entry", "uvm_vmalloc_return", false, .call = OBSERVER_CALL_KVMALLOC,
	  .ret_symbols = { "vzalloc_noprof", "vzalloc" } },
	{ "close UVM device", "close_uvm", "nvidia_uvm:uvm_release_entry", "free_second_entry", NULL,
	  false, .call = OBSERVER_CALL_NONE },
	{ "open UVM device", "open_uvm", "nvidia_uvm:uvm_open_entry", "uvm_file_entry",
	  "uvm_file_return", false, .call = OBSERVER_CALL_FILE },
	{ "remove VA space", "free_va_space", "nvidia_uvm:uvm_va_space_destroy",
	  "free_space_entry", NULL, false, .call = OBSERVER_CALL_NONE },
	{ "make VA space", "va_space", "nvidia_uvm:uvm_va_space_create", "space_entry",
	  "space_return", false, .call = OBSERVER_CALL_SPACE },
	{ "remove range group", "free_group", "nvidia_uvm:uvm_api_destroy_range_group",
	  "free_group_entry", "free_group_return", false, .call = OBSERVER_CALL_GROUP },
	{ "make range group", "group", "nvidia_uvm:uvm_api_create_range_group", "group_entry",
	  "group_return", false, .call = OBSERVER_CALL_GROUP },
	{ "assign to range group", "assign", "nvidia_uvm:uvm_range_group_assign_range",
	  "assign_entry", "assign_return", false, .call = OBSERVER_CALL_ASSIGN },
	{ "remove managed block", "free_block", "nvidia_uvm:uvm_va_block_destroy",
	  "free_object_entry", NULL, false, .call = OBSERVER_CALL_NONE },
	{ "make managed block", "block", "nvidia_uvm:uvm_va_block_create", "block_entry",
	  "block_return", false, .call = OBSERVER_CALL_BLOCK },
	{ "remove range", "free_range", "nvidia_uvm:uvm_va_range_destroy", "free_range_entry",
	  NULL, false, .call = OBSERVER_CALL_NONE },
	{ "place range", "tree_add", "nvidia_uvm:uvm_range_tree_add", "tree_add_entry", NULL, false,
	  .call = OBSERVER_CALL_NONE },
	{ "make external range", "external", "nvidia_uvm:uvm_va_range_create_external",
	  "external_entry", "range_return", false, .call = OBSERVER_CALL_RANGE },
	{ "make UVM pool", "pool_range", "nvidia_uvm:uvm_va_range_create_semaphore_pool",
	  "pool_range_entry", "range_return", false, .call = OBSERVER_CALL_RANGE },
	{ "make managed range", "mmap", "nvidia_uvm:uvm_va_range_create_mmap", "mmap_entry",
	  "range_return", false, .call = OBSERVER_CALL_RANGE },
	{ "split managed range", "split", "nvidia_uvm:uvm_va_range_split", "split_entry",
	  "range_return", false, .call = OBSERVER_CALL_RANGE },
	{ "free UVM pool", "free_pool", "nvidia_uvm:uvm_mem_free", "free_pages_entry", NULL, false,
	  .call = OBSERVER_CALL_NONE },
	{ "allocate UVM pool", "pool", "nvidia_uvm:uvm_mem_alloc", "pool_entry", "pool_return",
	  false, .call = OBSERVER_CALL_POOL },
	{ "free managed", "free_chunk", "nvidia_uvm:cpu_chunk_release", "free_chunk_entry", NULL,
	  true, .call = OBSERVER_CALL_NONE },
	{ "allocate managed", "chunk", "nvidia_uvm:uvm_cpu_chunk_alloc", "chunk_entry",
	  "chunk_return", true, .call = OBSERVER_CALL_CHUNK },
};

#define PLACES		(sizeof(places) / sizeof(places[0]))
_Static_assert(PLACES <= OBSERVER_HOOKS, "each has a row");

struct observer {
	struct observer_bpf *bpf;
	struct observer_maps maps;
	const char *folder;	/* NULL where nothing is pinned */
	char group[32];
	bool taken;		/* what is in the folder is another one's */
	bool knows_caller;	/* in what code nvidia.ko asks for large blocks, or will */
	int remover;		/* while it is open, the events stay */
	unsigned int records;
	char *why;
	size_t size;
	struct bpf_link *links[2 * PLACES + 1];
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

/* The kernel lets go of an event some time after its last user has. */
static void remove_event(const char *group, const char *name)
{
	const struct timespec step = { .tv_nsec = 10000000 };
	char text[NAME_MAX + 64];
	int i;

	snprintf(text, sizeof(text), "-:%s/%s", group, name);
	for (i = 0; i < PATIENCE && write_event(text) == -EBUSY; i++)
		nanosleep(&step, NULL);
}

static void remove_events(const char *group)
{
	char path[PATH_MAX], name[NAME_MAX + 1];
	const struct dirent *entry;
	DIR *dir;
	int left;

	snprintf(path, sizeof(path), "%s/events/%s", tracefs(), group);
	/* What is removed changes what is read: it begins anew after each. */
	do {
		left = 0;
		dir = opendir(path);
		if (!dir)
			return;
		while (!left && (entry = readdir(dir))) {
			/* Beside the events, which are folders, are the group's own files. */
			if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
				continue;
			snprintf(name, sizeof(name), "%s", entry->d_name);
			left = 1;
		}
		closedir(dir);
		if (left) {
			remove_event(group, name);
			snprintf(path, sizeof(path), "%s/events/%s/%s", tracefs(), group, name);
			left = access(path, F_OK) != 0;
			snprintf(path, sizeof(path), "%s/events/%s", tracefs(), group);
		}
	} while (left);
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
 * Of an observer that is held: a process that removes its events when its holder is gone, however
 * that ended. It is in no group that a signal is sent to, nobody has to wait for it, and it has no
 * file of its maker's, whose programs would go on otherwise.
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

/* How often an event was hit, by all that is told of it. */
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
static bool attach(struct observer *observer, const char *name, const char *symbol,
		   bool at_return, __u32 index, struct observer_hook *row, int *error)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(observer->bpf->obj, name);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.wakeup_events = 1,
	};
	char event[64], text[256], kind[16] = "p";
	/* By which the program knows which of its places it runs at. */
	LIBBPF_OPTS(bpf_perf_event_opts, options,
		    .bpf_cookie = at_return ? OBSERVER_HOOKS + index : index);
	struct bpf_link *link;
	int fd, id;

	if (at_return)
		snprintf(kind, sizeof(kind), "r%d", RETURNS);
	snprintf(event, sizeof(event), "%s%s", row->event, at_return ? "_ret" : "");
	snprintf(text, sizeof(text), "%s:%s/%s %s", kind, observer->group, event, symbol);
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

/* To the first of two functions that the kernel has. */
static bool attach_to_either(struct observer *observer, const char *name,
			     const char *const symbols[2], bool at_return, __u32 index,
			     struct observer_hook *row, int *error)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!attach(observer, name, symbols[i], at_return, index, row, error))
			return false;
		if (!*error)
			break;
	}
	return true;
}

/* By fentry: false where the kernel can't, or another one holds the function. */
static bool trace(struct observer *observer, const struct place *place, __u32 index,
		  struct observer_hook *row)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(observer->bpf->obj, place->traced);
	LIBBPF_OPTS(bpf_trace_opts, options, .cookie = index);
	struct bpf_link *link;

	if (bpf_program__fd(program) < 0)
		return false;
	link = bpf_program__attach_trace_opts(program, &options);
	if (!link || !keep(observer, link, row->event))
		return false;
	observer->maps.traced = bpf_program__fd(program);
	row->traced = 1;
	return true;
}

static bool hook_entry(struct observer *observer, const struct place *place, __u32 index,
		       struct observer_hook *row, int *error)
{
	if (place->caller_entry && observer->knows_caller)
		return attach_to_either(observer, place->caller_entry, place->ret_symbols, false,
					index, row, error);
	return attach(observer, place->entry, place->symbol, false, index, row, error);
}

static bool hook_return(struct observer *observer, const struct place *place, __u32 index,
			struct observer_hook *row, int *error)
{
	if (place->ret_symbols[0])
		return attach_to_either(observer, place->ret, place->ret_symbols, true, index, row,
					error);
	return attach(observer, place->ret, place->symbol, true, index, row, error);
}

static bool hook(struct observer *observer, __u32 index)
{
	const struct place *place = &places[index];
	struct observer_hook row = {
		.required = place->required,
		.call = place->call,
		.has_return = place->ret != NULL,
	};
	const char *symbol = place->symbol;
	int error = 0;

	snprintf(row.name, sizeof(row.name), "%s", place->name);
	/* The kernel's table of hits and misses has the events of all, by their names alone. */
	snprintf(row.event, sizeof(row.event), "%s_%s", observer->group, place->event);
	if (place->traced && trace(observer, place, index, &row)) {
		symbol = place->traced_symbol;
	} else {
		/* The return first: an entry whose return isn't seen would be in nobody's account. */
		if (place->ret && !hook_return(observer, place, index, &row, &error))
			return false;
		if (!error && !hook_entry(observer, place, index, &row, &error))
			return false;
		if (place->caller_entry && observer->knows_caller)
			symbol = place->ret_symbols[1];
	}
	snprintf(row.symbol, sizeof(row.symbol), "%s%s", strchr(symbol, ':') ? "" : "kernel:", symbol);
	row.error = (__u32)error;
	if (bpf_map_update_elem(observer->maps.hooks, &index, &row, BPF_ANY))
		return failed(observer, "the map of hooks can't be written: %s", strerror(errno));
	return true;
}

/* --- starting ----------------------------------------------------------------- */

static __u32 series_of(const char *module)
{
	char path[PATH_MAX];
	FILE *file;
	__u32 number = 0;

	snprintf(path, sizeof(path), "/sys/module/%s/version", module);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%u", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* What is known of a driver that is loaded; one that is loaded later is looked at then. */
static void identify(struct series *driver, __u32 number)
{
	static const struct series known[] = KNOWN_SERIES;
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (number >= known[i].first && number <= known[i].last)
			*driver = known[i];
}

/* Of a driver that is loaded; of one that is loaded later the programs see it themselves. */
static bool knows_caller(const struct observer *observer, __u32 nvidia_series)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	if (nvidia_series)
		bpf_prog_test_run_opts(bpf_program__fd(observer->bpf->progs.find_code), &options);
	return !nvidia_series || observer->bpf->bss->nvidia_code_size;
}

static bool begin(struct observer *observer)
{
	struct observer_totals totals = {
		.version = OBSERVER_VERSION,
		.root.refs = 1,
		.nvidia_series = series_of("nvidia"),
		.uvm_series = series_of("nvidia_uvm"),
	};
	struct timespec now;
	__u32 zero = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	totals.since_ns = (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
	identify(&observer->bpf->bss->drivers[0], totals.nvidia_series);
	identify(&observer->bpf->bss->drivers[1], totals.uvm_series);
	observer->knows_caller = knows_caller(observer, totals.nvidia_series);
	if (bpf_map_update_elem(observer->maps.totals, &zero, &totals, BPF_ANY))
		return failed(observer, "the maps can't be written: %s", strerror(errno));
	return true;
}

/* As systemd mounts it at boot, and bpftool where nothing has. */
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
	struct bpf_link *link;
	__u32 i, page_shift = 0;
	long page;
	int err;

	if (!tracefs())
		return failed(observer, "tracefs is not mounted, or has no kprobe events: mount -t tracefs tracefs /sys/kernel/tracing");
	remove_orphans();
	remove_events(observer->group);
	/* Before there are programs that it would have, too. */
	if (!observer->folder && !start_remover(observer))
		return false;
	observer->bpf = observer_bpf__open();
	if (!observer->bpf)
		return failed(observer, "the BPF programs can't be opened: %s", strerror(errno));
	for (page = sysconf(_SC_PAGESIZE); page > 1; page >>= 1)
		page_shift++;
	observer->bpf->rodata->page_shift = page_shift;
	/* It is not loaded where the kernel's BTF has no such function. */
	bpf_program__set_autoload(observer->bpf->progs.vfree_entry,
				  libbpf_find_vmlinux_btf_id("vfree", BPF_TRACE_FENTRY) > 0);
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
	observer->maps.traced = -1;
	if (!begin(observer) ||
	    (observer->folder && (!mount_bpffs(observer) || !pin_maps(observer))))
		return false;
	link = bpf_program__attach(observer->bpf->progs.cgroup_rmdir);
	if (!link)
		return failed(observer, "the tracepoint cgroup_rmdir can't be followed: %s",
			      strerror(errno));
	if (!keep(observer, link, "cgroup_rmdir"))
		return false;
	for (i = 0; i < PLACES; i++)
		if (!hook(observer, i))
			return false;
	if (observer->folder && observer->maps.traced >= 0 &&
	    !pin(observer, observer->maps.traced, "traced"))
		return false;
	return !observer->folder || pin(observer, observer->maps.totals, "totals");
}

static void end(struct observer *observer)
{
	size_t i;

	for (i = 0; i < observer->nr_links; i++) {
		/* What is pinned stays. */
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
	observer->remover = -1;
	observer->records = records;
	observer->why = why;
	observer->size = size;
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
	/* An empty folder, and events that nobody uses, do no harm where a service may not remove them. */
	rmdir(folder);
	if (!err && tracefs())
		remove_events(GROUP);
	return err;
}
