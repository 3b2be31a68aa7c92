/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small client of the NVIDIA kernel driver's control device. It speaks just
 * enough of the ioctl ABI to take system memory as an application does, without
 * a GPU and without privilege: open a client, allocate, map, unmap, free.
 *
 * Every call answers 0, the driver's own status (positive, see RM_ERR_*), or a
 * negative errno if the system call itself failed.
 */
#ifndef SELFTESTS_RMCLIENT_H
#define SELFTESTS_RMCLIENT_H

#include <stddef.h>
#include <stdint.h>

#define RM_CONTROL_DEVICE	"/dev/nvidiactl"

/* The statuses the tests ask about. */
#define RM_ERR_INSUFFICIENT_RESOURCES 0x1a
#define RM_ERR_INVALID_ARGUMENT	0x1f
#define RM_ERR_INVALID_STATE	0x40
#define RM_ERR_NO_MEMORY	0x51

struct rm_client {
	int fd;			/* the open control device */
	uint32_t root;		/* the client's handle */
};

/* A mapping lives on a file of its own: the driver ties one mapping to one file. */
struct rm_mapping {
	int fd;			/* -1 once closed */
	void *address;		/* NULL once unmapped */
	size_t size;
};

int rm_open(struct rm_client *client);
void rm_close(struct rm_client *client);

/* @handle is chosen by the caller and must be new in this client. */
int rm_alloc(const struct rm_client *client, uint32_t handle, uint64_t size);
int rm_free(const struct rm_client *client, uint32_t handle);

/* Objects that have no memory: events of the client's, once its file is subscribed to them. */
int rm_event_file(const struct rm_client *client);
int rm_alloc_event(const struct rm_client *client, uint32_t handle);

int rm_map(const struct rm_client *client, uint32_t handle, size_t size,
	   struct rm_mapping *mapping);
int rm_unmap(struct rm_mapping *mapping);
void rm_mapping_close(struct rm_mapping *mapping);

#endif
