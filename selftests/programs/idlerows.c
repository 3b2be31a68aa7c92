// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * idlerows MAP COUNT PID ACCOUNT: puts that many rows into the observer's map of processes, which is
 * pinned at MAP, as a process leaves them that has freed all that it held for that account.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct observer_client_key */
struct key {
	uint64_t start_ns;
	uint64_t account;
	uint32_t tgid;
	uint32_t unused;
};

static long bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static int die(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr get = { 0 }, ask = { 0 }, put = { 0 };
	struct key key = { 0 };
	void *empty;
	int map;

	if (argc != 5) {
		fprintf(stderr, "usage: idlerows MAP COUNT PID ACCOUNT\n");
		return 2;
	}
	get.pathname = (uintptr_t)argv[1];
	map = bpf(BPF_OBJ_GET, &get);
	if (map < 0)
		return die(argv[1]);
	ask.info.bpf_fd = map;
	ask.info.info_len = sizeof(info);
	ask.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &ask))
		return die("what the map is");
	if (info.key_size != sizeof(key)) {
		fprintf(stderr, "idlerows: a key has %u bytes\n", info.key_size);
		return 1;
	}
	empty = calloc(1, info.value_size);
	if (!empty)
		return die("a row");
	key.account = strtoull(argv[4], NULL, 10);
	key.tgid = strtoul(argv[3], NULL, 10);
	put.map_fd = map;
	put.key = (uintptr_t)&key;
	put.value = (uintptr_t)empty;
	for (key.start_ns = 1; key.start_ns <= strtoull(argv[2], NULL, 10); key.start_ns++)
		if (bpf(BPF_MAP_UPDATE_ELEM, &put))
			return die("a row is not taken");
	free(empty);
	return 0;
}
