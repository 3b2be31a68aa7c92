// SPDX-License-Identifier: GPL-2.0-or-later
#include "ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/genetlink.h>

/* The largest part of a dump that the kernel sends. */
#define BUFFER_BYTES	(32 << 10)

struct request {
	struct nlmsghdr header;
	struct genlmsghdr generic;
	struct nlattr attribute;
	char value[16];
};

static int send_request(struct ask *ask, uint16_t type, uint8_t command, uint16_t flags,
			uint16_t attribute, const void *value, size_t bytes)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct request request = {
		.header = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | flags,
			.nlmsg_seq = ++ask->sequence,
		},
		.generic = { .cmd = command, .version = UMACCT_FAMILY_VERSION },
	};

	if (attribute) {
		request.attribute.nla_type = attribute;
		request.attribute.nla_len = (uint16_t)(NLA_HDRLEN + bytes);
		memcpy(request.value, value, bytes);
		request.header.nlmsg_len += NLA_ALIGN(request.attribute.nla_len);
	}
	while (sendto(ask->fd, &request, request.header.nlmsg_len, MSG_NOSIGNAL,
		      (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* The bytes of one datagram of the kernel's, or a negative errno. */
static ssize_t receive(struct ask *ask)
{
	for (;;) {
		struct sockaddr_nl from = { 0 };
		socklen_t length = sizeof(from);
		ssize_t bytes = recvfrom(ask->fd, ask->buffer, BUFFER_BYTES, 0,
					 (struct sockaddr *)&from, &length);

		if (bytes >= 0 && from.nl_pid == 0)
			return bytes;
		if (bytes < 0 && errno != EINTR)
			return -errno;
	}
}

/* The code in an NLMSG_ERROR or NLMSG_DONE: 0 or a negative errno. */
static int code_of(const struct nlmsghdr *header)
{
	int code = 0;

	if (header->nlmsg_len >= NLMSG_LENGTH(sizeof(code)))
		memcpy(&code, NLMSG_DATA(header), sizeof(code));
	return code;
}

/* Answers until the request's end. */
static int read_answers(struct ask *ask, ask_answer *answer, void *to)
{
	bool interrupted = false;

	for (;;) {
		ssize_t bytes = receive(ask);
		struct nlmsghdr *header = (struct nlmsghdr *)ask->buffer;
		int rest;

		if (bytes < 0)
			return (int)bytes;
		for (rest = (int)bytes; NLMSG_OK(header, rest);
		     header = NLMSG_NEXT(header, rest)) {
			if (header->nlmsg_seq != ask->sequence)
				continue;
			interrupted |= header->nlmsg_flags & NLM_F_DUMP_INTR;
			if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE) {
				int code = code_of(header);

				return code == 0 && interrupted ? -EINTR : code;
			}
			if (header->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
				continue;
			answer((struct nlattr *)((char *)NLMSG_DATA(header) + GENL_HDRLEN),
			       header->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), to);
		}
	}
}

static void read_family(const struct nlattr *attributes, size_t size, void *to)
{
	const void *id = ask_attribute(attributes, size, CTRL_ATTR_FAMILY_ID, sizeof(uint16_t));

	if (id)
		memcpy(to, id, sizeof(uint16_t));
}

int ask_open(struct ask *ask)
{
	/* The kernel answers at once; otherwise there is no wait. */
	const struct timeval patience = { .tv_sec = 1 };
	int code;

	memset(ask, 0, sizeof(*ask));
	ask->buffer = malloc(BUFFER_BYTES);
	if (!ask->buffer)
		return -ENOMEM;
	ask->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (ask->fd < 0) {
		code = -errno;
		free(ask->buffer);
		return code;
	}
	setsockopt(ask->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	code = send_request(ask, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK,
			    CTRL_ATTR_FAMILY_NAME, UMACCT_FAMILY_NAME, sizeof(UMACCT_FAMILY_NAME));
	if (code == 0)
		code = read_answers(ask, read_family, &ask->family);
	if (code == 0 && ask->family == 0)
		code = -ENOENT;
	if (code < 0)
		ask_close(ask);
	return code;
}

void ask_close(struct ask *ask)
{
	close(ask->fd);
	free(ask->buffer);
}

int ask_one(struct ask *ask, enum umacct_cmd command, uint16_t id_type, uint64_t id,
	    ask_answer *answer, void *to)
{
	int code = send_request(ask, ask->family, (uint8_t)command, NLM_F_ACK, id_type, &id,
				sizeof(id));

	return code == 0 ? read_answers(ask, answer, to) : code;
}

int ask_all(struct ask *ask, enum umacct_cmd command, ask_answer *answer, void *to)
{
	int code = send_request(ask, ask->family, (uint8_t)command, NLM_F_DUMP, 0, NULL, 0);

	return code == 0 ? read_answers(ask, answer, to) : code;
}
