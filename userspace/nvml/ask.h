/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The umacct module over generic netlink. lib/module serves all other programs; this
 * is for a library that is loaded into other people's programs and containers, where libnl and
 * the C++ library aren't, or are others.
 */
#ifndef UMACCT_NVML_ASK_H
#define UMACCT_NVML_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

#include <umacct.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the attributes of one answer. */
typedef void ask_answer(const struct nlattr *attributes, size_t size, void *to);

struct ask {
	int fd;
	uint16_t family;
	uint32_t sequence;
	char *buffer;
};

/* 0, or a negative errno: -ENOENT where the module isn't loaded. Closed only after 0. */
int ask_open(struct ask *ask);
void ask_close(struct ask *ask);

/* One answer. id_type: the attribute that id is; 0 for none. 0, or a negative errno. */
int ask_one(struct ask *ask, enum umacct_cmd command, uint16_t id_type, uint64_t id,
	    ask_answer *answer, void *to);

/* Reads all answers. -EINTR where something changed meanwhile. */
int ask_all(struct ask *ask, enum umacct_cmd command, ask_answer *answer, void *to);

/* Returns the attribute of that type, if it has at least that many bytes; else NULL. */
const void *ask_attribute(const struct nlattr *attributes, size_t size, uint16_t type,
			  size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
