// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rmtool: takes memory from the NVIDIA driver, and lets it go, as a script says.
 *
 * Objects are numbered from 0 in the order of their allocation, and from 0 again
 * after "free all". The "kernel" command hands its words to umacct_test_alloc.ko, which calls the driver's
 * allocator directly, in this process's context.
 */
#include "rmclient.h"
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#define TEST_ALLOC_DEVICE	"/dev/umacct_test_alloc"
#define FIRST_HANDLE		0xcaf00000u
#define MAX_OBJECTS		65536
#define FIRST_EVENT		(FIRST_HANDLE + MAX_OBJECTS + 1)

/* NV_ESC_RM_ALLOC; the driver reads its argument before anything else. */
#define STALLING_IOCTL		_IOWR('F', 0x2b, char[48])

struct object {
	uint64_t size;			/* 0: free */
	struct rm_mapping mapping;
};

static struct rm_client client = { .fd = -1 };
static struct object *objects;
static unsigned int nr_objects;		/* ever allocated */
static int test_alloc_fd = -1;

static int by_32_bits;

#ifdef __x86_64__
#define IOCTL_32	54

/* The call of a 32-bit program, open to any program: its argument must lie low. */
static int ioctl_32(int fd, unsigned long request, void *args)
{
	size_t size = _IOC_SIZE(request);
	void *low = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long ret;

	if (low == MAP_FAILED)
		return -1;
	memcpy(low, args, size);
	asm volatile("int $0x80"
		     : "=a"(ret)
		     : "a"(IOCTL_32), "b"(fd), "c"((uint32_t)request), "d"(low)
		     : "memory", "r8", "r9", "r10", "r11");
	memcpy(args, low, size);
	munmap(low, size);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}
#else
static int ioctl_32(int fd, unsigned long request, void *args)
{
	(void)fd, (void)request, (void)args;
	errno = ENOSYS;
	return -1;
}
#endif

/* The linker has the client come here. */
int __wrap_ioctl(int fd, unsigned long request, void *args)
{
	return by_32_bits ? ioctl_32(fd, request, args) : (int)syscall(SYS_ioctl, fd, request, args);
}

static uint32_t handle_of(const struct object *object)
{
	return FIRST_HANDLE + (object - objects);
}

static void report(void)
{
	uint64_t bytes = 0;
	unsigned int live = 0;

	for (unsigned int i = 0; i < nr_objects; i++) {
		bytes += objects[i].size;
		live += objects[i].size != 0;
	}
	script_note("objects=%u bytes=%llu", live, (unsigned long long)bytes);
}

static int open_client(void)
{
	return client.fd < 0 ? rm_open(&client) : 0;
}

static int alloc_one(uint64_t size)
{
	struct object *object = &objects[nr_objects];
	int ret;

	if (nr_objects == MAX_OBJECTS)
		return -ENOSPC;
	ret = rm_alloc(&client, handle_of(object), size);
	if (ret)
		return ret;
	object->size = size;
	object->mapping.fd = -1;
	nr_objects++;
	return 0;
}

static int alloc_many(const char *size_text, unsigned int count)
{
	unsigned int done;
	uint64_t size;
	int ret = script_parse_size(size_text, &size);

	if (ret)
		return ret;
	ret = open_client();
	if (ret)
		return ret;
	for (done = 0; done < count && !ret; done++)
		ret = alloc_one(size);
	script_note("count=%u", done - (ret != 0));
	return ret;
}

static int cmd_alloc(int argc, char **argv)
{
	return alloc_many(argv[1], argc > 2 ? strtoul(argv[2], NULL, 0) : 1);
}

static int cmd_fill(int argc, char **argv)
{
	(void)argc;
	return alloc_many(argv[1], MAX_OBJECTS);
}

static struct object *find_object(const char *text)
{
	char *end;
	unsigned long index = strtoul(text, &end, 0);

	if (!strcmp(text, "last"))
		index = nr_objects - 1;
	else if (end == text || *end)
		return NULL;
	return index < nr_objects ? &objects[index] : NULL;
}

static int free_object(struct object *object)
{
	int ret = rm_free(&client, handle_of(object));

	if (!ret)
		object->size = 0;
	return ret;
}

/* Numbers start again where nothing refers to the old ones, so that a program that
 * allocates and frees for hours is no larger for it.
 */
static void forget_objects(void)
{
	for (unsigned int i = 0; i < nr_objects; i++) {
		if (objects[i].size || objects[i].mapping.address || objects[i].mapping.fd >= 0)
			return;
	}
	nr_objects = 0;
}

static int free_all(void)
{
	int ret = 0;

	for (unsigned int i = 0; i < nr_objects && !ret; i++) {
		if (objects[i].size)
			ret = free_object(&objects[i]);
	}
	forget_objects();
	return ret;
}

static int cmd_free(int argc, char **argv)
{
	struct object *object;

	(void)argc;
	if (!strcmp(argv[1], "all"))
		return free_all();
	object = find_object(argv[1]);
	return object ? free_object(object) : -ENOENT;
}

static int cmd_churn(int argc, char **argv)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	unsigned long done = 0;
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);

	if (!ret)
		ret = open_client();
	while (!ret && (!rounds || done < rounds)) {
		ret = rm_alloc(&client, FIRST_HANDLE + MAX_OBJECTS, size);
		if (!ret)
			ret = rm_free(&client, FIRST_HANDLE + MAX_OBJECTS);
		done += !ret;
	}
	script_note("rounds=%lu", done);
	return ret;
}

/* Writes and reads back, so that what is mapped is known to be memory. */
static int check_mapping(const struct rm_mapping *mapping)
{
	volatile uint64_t *words = mapping->address;
	size_t count = mapping->size / sizeof(*words);
	size_t stride = 4096 / sizeof(*words);

	for (size_t i = 0; i < count; i += stride)
		words[i] = i + 1;
	for (size_t i = 0; i < count; i += stride) {
		if (words[i] != i + 1)
			return -EIO;
	}
	return 0;
}

static int cmd_map(int argc, char **argv)
{
	struct object *object = find_object(argv[1]);
	int ret;

	(void)argc;
	if (!object || !object->size)
		return -ENOENT;
	ret = rm_map(&client, handle_of(object), object->size, &object->mapping);
	return ret ? ret : check_mapping(&object->mapping);
}

/* Whether all of it is clear; it isn't afterwards. */
static int is_clear(const struct rm_mapping *mapping)
{
	uint64_t *words = mapping->address;
	size_t count = mapping->size / sizeof(*words);
	int clear = 1;

	for (size_t i = 0; i < count; i++)
		clear &= !words[i];
	memset(mapping->address, 0xa5, mapping->size);
	return clear;
}

/* Maps an object that was just allocated, counts it if it isn't clear, and makes it dirty. */
static int look_at(uint64_t size, unsigned long *dirty)
{
	struct rm_mapping mapping;
	int ret = rm_map(&client, FIRST_HANDLE + MAX_OBJECTS, size, &mapping);

	if (ret)
		return ret;
	*dirty += !is_clear(&mapping);
	rm_unmap(&mapping);
	rm_mapping_close(&mapping);
	return 0;
}

/* Asks again whatever the answer was, and gives back what it gets. */
static int insist(int argc, char **argv, int looks)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	unsigned long given = 0, refused = 0, dirty = 0;
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);

	if (!ret)
		ret = open_client();
	while (!ret && (!rounds || given + refused < rounds)) {
		if (rm_alloc(&client, FIRST_HANDLE + MAX_OBJECTS, size)) {
			refused++;
			continue;
		}
		given++;
		if (looks)
			ret = look_at(size, &dirty);
		if (!ret)
			ret = rm_free(&client, FIRST_HANDLE + MAX_OBJECTS);
	}
	script_note("given=%lu refused=%lu dirty=%lu", given, refused, dirty);
	return ret;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

/* How long each of many calls took. */
struct times {
	uint64_t start, worst, sum, calls;
};

static void times_add(struct times *times, uint64_t start)
{
	uint64_t took = now_us() - start;

	times->sum += took;
	times->calls++;
	if (took > times->worst)
		times->worst = took;
}

static void times_note(const struct times *times)
{
	script_note("total_ms=%llu worst_us=%llu mean_us=%llu",
		    (unsigned long long)(now_us() - times->start) / 1000,
		    (unsigned long long)times->worst,
		    (unsigned long long)(times->calls ? times->sum / times->calls : 0));
}

/* Takes as much as it gets of that many, however often it is refused. */
static int cmd_load(int argc, char **argv)
{
	unsigned int count = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	struct times times = { .start = now_us() };
	unsigned int given = 0, refused = 0;
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);

	if (!ret)
		ret = open_client();
	while (!ret && given + refused < count) {
		uint64_t start = now_us();

		if (alloc_one(size))
			refused++;
		else
			given++;
		times_add(&times, start);
	}
	script_note("count=%u refused=%u", given, refused);
	times_note(&times);
	return ret;
}

static int cmd_neighbour(int argc, char **argv)
{
	struct times times = { .start = now_us() };
	unsigned long refused = 0;
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);

	(void)argc;
	if (!ret)
		ret = open_client();
	while (!ret && access(argv[2], F_OK)) {
		uint64_t start = now_us();

		if (rm_alloc(&client, FIRST_HANDLE + MAX_OBJECTS, size))
			refused++;
		else
			ret = rm_free(&client, FIRST_HANDLE + MAX_OBJECTS);
		times_add(&times, start);
		usleep(1000);
	}
	script_note("rounds=%llu refused=%lu", (unsigned long long)times.calls, refused);
	times_note(&times);
	return ret;
}

static int cmd_insist(int argc, char **argv)
{
	return insist(argc, argv, 0);
}

static int cmd_inspect(int argc, char **argv)
{
	return insist(argc, argv, 1);
}

static int cmd_unmap(int argc, char **argv)
{
	struct object *object = find_object(argv[1]);

	(void)argc;
	if (!object || !object->mapping.address)
		return -ENOENT;
	return rm_unmap(&object->mapping);
}

static int cmd_unmapclose(int argc, char **argv)
{
	struct object *object = find_object(argv[1]);

	(void)argc;
	if (!object)
		return -ENOENT;
	rm_mapping_close(&object->mapping);
	return 0;
}

static int cmd_open(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_client();
}

/* Files of the driver's, with a client each or without one, which stay open. */
static int open_many(int argc, char **argv, int (*open_one)(void))
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	unsigned long done;
	int ret = 0;

	for (done = 0; done < count; done++) {
		ret = open_one();
		if (ret)
			break;
	}
	script_note("count=%lu", done);
	return ret;
}

static int open_a_file(void)
{
	return open(RM_CONTROL_DEVICE, O_RDWR | O_CLOEXEC) < 0 ? -errno : 0;
}

static int open_a_client(void)
{
	struct rm_client another;

	return rm_open(&another);
}

static int cmd_files(int argc, char **argv)
{
	return open_many(argc, argv, open_a_file);
}

static int cmd_clients(int argc, char **argv)
{
	return open_many(argc, argv, open_a_client);
}

/* Objects that have no memory, which stay. */
static int cmd_events(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1, done;
	static unsigned int events;
	int ret = open_client();

	if (!ret && !events)
		ret = rm_event_file(&client);
	for (done = 0; done < count && !ret; done++)
		ret = rm_alloc_event(&client, FIRST_EVENT + events++);
	script_note("count=%lu", done - (ret != 0));
	return ret;
}

/* Driver metadata of any allocation: an unprivileged program can have as much of it as it likes. */
struct rm_alloc_args {
	uint32_t root, parent, handle, class;
	uint64_t params;
	uint32_t size, status;
};

struct rm_control_args {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t size, status;
};

struct rm_share_args {
	uint32_t client, object, target, mask;
	uint16_t type;
	uint8_t action, pad;
	uint32_t status;
};

#define IOCTL_ALLOC		_IOWR('F', 0x2b, struct rm_alloc_args)
#define IOCTL_CONTROL		_IOWR('F', 0x2a, struct rm_control_args)
#define IOCTL_SHARE		_IOWR('F', 0x35, struct rm_share_args)
#define IOCTL_ATTACH(size)	_IOC(_IOC_READ | _IOC_WRITE, 'F', 212, size)
#define FIRST_KEPT		(FIRST_EVENT + 0x1000000u)
#define CLASS_WITHOUT_MEMORY	0xcb33
#define COMMAND_EXPORT		0x3d0a
#define SHARE_WITH_CLIENT	3
#define SHARE_REQUIRED		4

static int keep_object(void)
{
	static unsigned int kept;
	struct rm_alloc_args args = {
		.root = client.root,
		.parent = client.root,
		.handle = FIRST_KEPT + kept++,
		.class = CLASS_WITHOUT_MEMORY,
	};

	return ioctl(client.fd, IOCTL_ALLOC, &args) ? -errno : (int)args.status;
}

/* A file that others could have objects by: an array of 4 bytes for each that it might have. */
static int keep_export(void)
{
	struct {
		uint32_t device;
		uint16_t most;
		uint8_t metadata[64];
		int32_t fd;
	} params = { .most = 32767, .fd = open(RM_CONTROL_DEVICE, O_RDWR | O_CLOEXEC) };
	struct rm_control_args args = {
		.client = client.root,
		.object = client.root,
		.command = COMMAND_EXPORT,
		.params = (uintptr_t)&params,
		.size = sizeof(params),
	};

	if (params.fd < 0 || ioctl(client.fd, IOCTL_CONTROL, &args))
		return -errno;
	return args.status;
}

/* A file that has a list of no GPUs. */
static int keep_list(void)
{
	static uint32_t none[16380 / sizeof(uint32_t)];
	int fd = open(RM_CONTROL_DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 || ioctl(fd, IOCTL_ATTACH(sizeof(none)), none) ? -errno : 0;
}

/* An object with each of the clients; the next object is one of the client's own. */
static int keep_share(void)
{
	static uint32_t with[300];
	static unsigned int shares, nr_clients;
	struct rm_share_args args = {
		.client = client.root,
		.type = SHARE_WITH_CLIENT,
		.action = SHARE_REQUIRED,
	};
	int ret = 0;

	for (; nr_clients < sizeof(with) / sizeof(*with); nr_clients++) {
		struct rm_alloc_args another = { .class = 0x41 };

		if (ioctl(client.fd, IOCTL_ALLOC, &another) || another.status)
			return errno ? -errno : (int)another.status;
		with[nr_clients] = another.handle;
	}
	if (shares % nr_clients == 0)
		ret = alloc_one(4096);
	if (ret)
		return ret;
	args.object = handle_of(&objects[nr_objects - 1]);
	args.target = with[shares++ % nr_clients];
	return ioctl(client.fd, IOCTL_SHARE, &args) ? -errno : (int)args.status;
}

static int cmd_keep(int argc, char **argv)
{
	static const struct {
		const char *what;
		int (*one)(void);
	} kinds[] = {
		{ "objects", keep_object },
		{ "exports", keep_export },
		{ "lists", keep_list },
		{ "shares", keep_share },
	};
	int ret = open_client();

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds) && !ret; i++)
		if (!strcmp(argv[1], kinds[i].what))
			return open_many(argc - 1, argv + 1, kinds[i].one);
	return ret ? ret : -EINVAL;
}

/* Asks the driver to make an object of so much of this program's own memory, for a client
 * and a device that there are not: it looks at the memory first.
 */
#define FUNCTION_OS_DESCRIPTOR	27

struct rm_heap_args {
	uint32_t root;
	uint32_t parent;
	uint32_t function;
	uint32_t va_space;
	uint32_t heap;
	uint32_t status;
	uint64_t total;
	uint64_t free;
	struct {
		uint32_t handle;
		uint32_t type;
		uint32_t flags;
		uint32_t attr;
		uint32_t attr2;
		uint32_t pad;
		uint64_t address;
		uint64_t last;
	} descriptor;
	char others[104];
};

#define IOCTL_HEAP_CONTROL	_IOWR('F', 0x4a, struct rm_heap_args)

static int cmd_describe(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	static char page[65536] __attribute__((aligned(65536)));
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);

	if (!ret)
		ret = open_client();
	while (!ret && count--) {
		struct rm_heap_args args = {
			.function = FUNCTION_OS_DESCRIPTOR,
			.descriptor = { .address = (uintptr_t)page, .last = size - 1 },
		};

		if (ioctl(client.fd, IOCTL_HEAP_CONTROL, &args))
			return -errno;
		script_note("answer=0x%x", args.status);
	}
	return ret;
}

static int cmd_32_bits(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	by_32_bits = 1;
	return 0;
}

/* Sleeps in the driver's ioctl, for an argument that never comes, until it is killed. */
static int cmd_stall(int argc, char **argv)
{
	size_t size = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register registration = {
		.range = { .start = (uintptr_t)page, .len = size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	int ret = open_client();

	(void)argc;
	(void)argv;
	if (ret)
		return ret;
	if (page == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &registration) || ioctl(client.fd, STALLING_IOCTL, page))
		return -errno;
	return 0;
}

static int cmd_close(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	rm_close(&client);
	for (unsigned int i = 0; i < nr_objects; i++)
		objects[i].size = 0;
	return 0;
}

static int cmd_fork(int argc, char **argv)
{
	pid_t pid = fork();

	(void)argc;
	if (pid < 0)
		return -errno;
	if (!pid) {
		if (script_use_fifos(argv[1]))
			_exit(1);
		return 0;	/* the first answer on the new pair: the child is there */
	}
	script_note("pid=%d", pid);
	return 0;
}

/* The receiver needs this beside the file: the client's handle and its objects. */
struct handover {
	uint32_t root;
	uint32_t nr_objects;
	uint64_t sizes[64];
};

#define MAX_HANDOVER	(sizeof(((struct handover *)0)->sizes) / sizeof(uint64_t))

union fd_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static int handover_fd = -1;

static int unix_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

static int cmd_listen(int argc, char **argv)
{
	struct sockaddr_un address;
	int ret = unix_address(argv[1], &address);

	(void)argc;
	if (ret)
		return ret;
	handover_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (handover_fd < 0 ||
	    bind(handover_fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return 0;
}

static int cmd_sendfd(int argc, char **argv)
{
	struct handover handover = { .root = client.root, .nr_objects = nr_objects };
	struct iovec iov = { .iov_base = &handover, .iov_len = sizeof(handover) };
	union fd_control control = { 0 };
	struct sockaddr_un address;
	struct msghdr message = {
		.msg_name = &address, .msg_namelen = sizeof(address),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int ret = unix_address(argv[1], &address);
	int fd;

	(void)argc;
	if (ret)
		return ret;
	if (nr_objects > MAX_HANDOVER)
		return -E2BIG;
	for (unsigned int i = 0; i < nr_objects; i++)
		handover.sizes[i] = objects[i].size;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &client.fd, sizeof(int));

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendmsg(fd, &message, 0) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int cmd_recvfd(int argc, char **argv)
{
	struct handover handover;
	struct iovec iov = { .iov_base = &handover, .iov_len = sizeof(handover) };
	union fd_control control;
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	(void)argc;
	(void)argv;
	if (client.fd >= 0)
		return -EBUSY;
	if (recvmsg(handover_fd, &message, MSG_CMSG_CLOEXEC) != sizeof(handover))
		return -EIO;
	memcpy(&client.fd, CMSG_DATA(&control.header), sizeof(int));
	client.root = handover.root;
	nr_objects = handover.nr_objects;
	for (unsigned int i = 0; i < nr_objects; i++) {
		objects[i].size = handover.sizes[i];
		objects[i].mapping.fd = -1;
	}
	return 0;
}

static int cmd_kernel(int argc, char **argv)
{
	char line[256] = "";
	ssize_t length;

	if (test_alloc_fd < 0)
		test_alloc_fd = open(TEST_ALLOC_DEVICE, O_RDWR | O_CLOEXEC);
	if (test_alloc_fd < 0)
		return -errno;
	for (int i = 1; i < argc; i++) {
		strncat(line, argv[i], sizeof(line) - strlen(line) - 1);
		strncat(line, " ", sizeof(line) - strlen(line) - 1);
	}
	if (write(test_alloc_fd, line, strlen(line)) < 0)
		return -errno;
	length = read(test_alloc_fd, line, sizeof(line) - 1);
	if (length <= 0)
		return -EIO;
	line[strcspn(line, "\n")] = '\0';
	script_note("%s", line);
	return strtol(line + strlen("status="), NULL, 0);
}

static int cmd_sleep(int argc, char **argv)
{
	double seconds = strtod(argv[1], NULL);
	struct timespec time = {
		.tv_sec = seconds,
		.tv_nsec = (seconds - (time_t)seconds) * 1e9,
	};

	(void)argc;
	return nanosleep(&time, NULL) ? -errno : 0;
}

static void *locked;
static uint64_t locked_size;

static int cmd_unlock(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (locked)
		munmap(locked, locked_size);
	locked = NULL;
	return 0;
}

static int cmd_lock(int argc, char **argv)
{
	uint64_t size;
	int ret = script_parse_size(argv[1], &size);
	void *at;

	(void)argc;
	if (ret)
		return ret;
	if (locked)
		return -EBUSY;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	if (mlock(at, size)) {
		ret = -errno;
		munmap(at, size);
		return ret;
	}
	locked = at;
	locked_size = size;
	return 0;
}

/* Memory of its own, until it ends. */
static int take_own(const char *text, int flags)
{
	uint64_t size;
	int ret = script_parse_size(text, &size);
	void *at;

	if (ret)
		return ret;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	memset(at, 1, size);
	return 0;
}

static int cmd_touch(int argc, char **argv)
{
	(void)argc;
	return take_own(argv[1], MAP_PRIVATE);
}

static int cmd_share(int argc, char **argv)
{
	(void)argc;
	return take_own(argv[1], MAP_SHARED);
}

/* Writes each page of a file's private mapping, as a loader does that pins a checkpoint. */
static int cmd_private(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	struct stat file;
	char *at;

	(void)argc;
	if (fd < 0 || fstat(fd, &file))
		return -errno;
	at = mmap(NULL, file.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	for (off_t i = 0; i < file.st_size; i += 4096)
		at[i] = 1;
	return 0;
}

/* Moves a block to memory of its own, or back: it exists twice meanwhile, as in a checkpoint. */
static int move_block(struct object *object, uint64_t size, char *own, int out)
{
	int ret;

	if (out) {
		memset(own, 1, size);
		return free_object(object);
	}
	ret = rm_alloc(&client, handle_of(object), size);
	if (ret)
		return ret;
	object->size = size;
	return madvise(own, size, MADV_DONTNEED) ? -errno : 0;
}

static int cmd_suspend(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	uint64_t size = nr_objects ? objects[0].size : 0;
	char *own;
	int ret = 0;

	if (!size)
		return -ENOENT;
	own = mmap(NULL, nr_objects * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (own == MAP_FAILED)
		return -errno;
	for (unsigned long i = 0; i < 2 * rounds && !ret; i++) {
		for (unsigned int j = 0; j < nr_objects && !ret; j++)
			ret = move_block(&objects[j], size, own + j * size, !(i % 2));
	}
	munmap(own, nr_objects * size);
	return ret;
}

static int cmd_pause(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	pause();
	return 0;
}

static int cmd_crash(int argc, char **argv)
{
	const struct rlimit no_core = { 0 };

	(void)argc;
	(void)argv;
	setrlimit(RLIMIT_CORE, &no_core);
	raise(SIGSEGV);
	return 0;
}

static const struct script_command commands[] = {
	{ "open", "", 0, cmd_open },
	{ "alloc", "SIZE [COUNT]", 1, cmd_alloc },
	{ "fill", "SIZE    (until it is refused)", 1, cmd_fill },
	{ "free", "N|last|all", 1, cmd_free },
	{ "churn", "SIZE [ROUNDS]    (allocate and free; for ever without ROUNDS)", 1, cmd_churn },
	{ "insist", "SIZE [ROUNDS]    (as churn, but takes no for an answer)", 1, cmd_insist },
	{ "inspect", "SIZE [ROUNDS]    (as insist, and counts what was not clear)", 1,
	  cmd_inspect },
	{ "load", "SIZE COUNT    (as alloc, but goes on when it is refused; says how long it took)", 2,
	  cmd_load },
	{ "neighbour", "SIZE FILE    (allocate and free until FILE is there; the same)", 2,
	  cmd_neighbour },
	{ "map", "N|last", 1, cmd_map },
	{ "unmap", "N|last", 1, cmd_unmap },
	{ "unmapclose", "N|last    (close the file that was mapped)", 1, cmd_unmapclose },
	{ "stall", "    (sleep in the driver's ioctl until killed)", 0, cmd_stall },
	{ "close", "", 0, cmd_close },
	{ "files", "COUNT    (open the device so often)", 1, cmd_files },
	{ "clients", "COUNT    (the same, with a client each)", 1, cmd_clients },
	{ "events", "COUNT    (objects that have no memory)", 1, cmd_events },
	{ "keep", "objects|exports|lists|shares COUNT    (which the driver keeps something of)", 2,
	  cmd_keep },
	{ "describe", "SIZE [COUNT]    (so much of its own memory, which it hasn't got)", 1,
	  cmd_describe },
	{ "32bits", "    (from now on, the system calls of such a program)", 0, cmd_32_bits },
	{ "fork", "FIFOS    (the child takes its commands there)", 1, cmd_fork },
	{ "listen", "SOCKET", 1, cmd_listen },
	{ "sendfd", "SOCKET", 1, cmd_sendfd },
	{ "recvfd", "", 0, cmd_recvfd },
	{ "kernel", "WORDS...    (to " TEST_ALLOC_DEVICE ")", 1, cmd_kernel },
	{ "sleep", "SECONDS", 1, cmd_sleep },
	{ "lock", "SIZE    (of its own memory, which can't be taken back)", 1, cmd_lock },
	{ "unlock", "", 0, cmd_unlock },
	{ "touch", "SIZE    (of its own memory)", 1, cmd_touch },
	{ "share", "SIZE    (of its own shared memory)", 1, cmd_share },
	{ "private", "FILE    (write a private mapping of it)", 1, cmd_private },
	{ "suspend", "[ROUNDS]    (move all, of one size, to its own memory and back)", 0, cmd_suspend },
	{ "pause", "", 0, cmd_pause },
	{ "crash", "", 0, cmd_crash },
	{ 0 }
};

int main(int argc, char **argv)
{
	objects = calloc(MAX_OBJECTS, sizeof(*objects));
	if (!objects)
		return 1;
	signal(SIGCHLD, SIG_IGN);
	return script_run(argc, argv, commands, report);
}
