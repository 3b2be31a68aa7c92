// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cri SOCKET METHOD MESSAGE [FIELD]: calls a method of a container runtime's CRI, as kubelet does:
 * gRPC over a Unix socket. Debian has no client of it. METHOD is as RuntimeService/StartContainer.
 * Ends with 1 where the runtime refuses; why, the runtime writes to its log.
 *
 * MESSAGE is what protobuf encodes, by the numbers of fields in the interface's api.proto:
 *
 *   1"text"  2=5  3{1"text in a message in a message"}
 *
 * A text has no quotation mark in it. FIELD is what to print of the answer, as 1 or 1.3: a text, or a
 * number, which is 0 where the answer has no such field.
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Types of HTTP/2 frames. */
#define PREFACE		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define HEAD_SIZE	9
#define STREAM		1

enum frame {
	DATA,
	HEADERS,
	RST_STREAM = 3,
	SETTINGS,
	GOAWAY = 7,
};

#define ACK		0x1
#define END_STREAM	0x1
#define END_HEADERS	0x4

/* gRPC's head of a message: whether it is compressed, and its length. */
#define PREFIX_SIZE	5

/* Wire types of protobuf. */
#define VARINT		0
#define FIXED64		1
#define LENGTH		2
#define FIXED32		5

struct buffer {
	uint8_t bytes[1 << 16];
	size_t size;
};

static void put(struct buffer *buffer, const void *bytes, size_t size)
{
	if (size > sizeof(buffer->bytes) - buffer->size)
		errx(2, "it is too long");
	memcpy(buffer->bytes + buffer->size, bytes, size);
	buffer->size += size;
}

static void put_byte(struct buffer *buffer, uint8_t byte)
{
	put(buffer, &byte, 1);
}

/* --- protobuf --------------------------------------------------------------------- */

static void put_varint(struct buffer *buffer, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		put_byte(buffer, value | 0x80);
	put_byte(buffer, value);
}

static void put_length(struct buffer *to, uint64_t field, const void *bytes, size_t size)
{
	put_varint(to, field << 3 | LENGTH);
	put_varint(to, size);
	put(to, bytes, size);
}

/* Returns where it ended: at the end, or behind a closing brace. */
static const char *encode(const char *text, struct buffer *to, bool nested)
{
	struct buffer *inner;
	const char *end;
	uint64_t field;

	for (;;) {
		text += strspn(text, " \t\n");
		if (!*text && !nested)
			return text;
		if (*text == '}' && nested)
			return text + 1;
		field = strtoull(text, (char **)&end, 10);
		if (end == text)
			errx(2, "no field's number: %s", text);
		text = end + 1;
		switch (*end) {
		case '"':
			end = strchr(text, '"');
			if (!end)
				errx(2, "no end of a text: %s", text);
			put_length(to, field, text, end - text);
			text = end + 1;
			break;
		case '=':
			put_varint(to, field << 3 | VARINT);
			put_varint(to, strtoull(text, (char **)&text, 10));
			break;
		case '{':
			inner = calloc(1, sizeof(*inner));
			if (!inner)
				err(2, "calloc");
			text = encode(text, inner, true);
			put_length(to, field, inner->bytes, inner->size);
			free(inner);
			break;
		default:
			errx(2, "no value: %s", end);
		}
	}
}

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static void print(const uint8_t *at, const uint8_t *end, const char *path)
{
	uint64_t wanted = strtoull(path, (char **)&path, 10), key, value;

	while (at < end) {
		key = varint(&at, end);
		value = 0;
		switch (key & 7) {
		case VARINT:
		case LENGTH:
			value = varint(&at, end);
			break;
		case FIXED64:
			at += 8;
			continue;
		case FIXED32:
			at += 4;
			continue;
		default:
			errx(2, "the answer is no message");
		}
		if ((key & 7) == LENGTH && value > (uint64_t)(end - at))
			errx(2, "the answer ends too early");
		if (key >> 3 == wanted && (key & 7) == VARINT) {
			printf("%llu\n", (unsigned long long)value);
			return;
		}
		if (key >> 3 == wanted && *path == '.') {
			print(at, at + value, path + 1);
			return;
		}
		if (key >> 3 == wanted) {
			printf("%.*s\n", (int)value, at);
			return;
		}
		if ((key & 7) == LENGTH)
			at += value;
	}
	puts("0");
}

/* --- HTTP/2 ------------------------------------------------------------------------ */

static void put_frame(struct buffer *to, enum frame type, uint8_t flags, uint32_t stream,
		      const struct buffer *payload)
{
	uint8_t head[HEAD_SIZE] = {
		payload->size >> 16, payload->size >> 8, payload->size, type, flags,
		stream >> 24, stream >> 16, stream >> 8, stream,
	};

	put(to, head, sizeof(head));
	put(to, payload->bytes, payload->size);
}

/* A header that neither side has to remember, without compression. */
static void put_header(struct buffer *to, const char *name, const char *value)
{
	put_byte(to, 0);
	put_byte(to, strlen(name));
	put(to, name, strlen(name));
	put_byte(to, strlen(value));
	put(to, value, strlen(value));
}

static void put_headers(struct buffer *to, const char *method)
{
	char path[127];

	if ((size_t)snprintf(path, sizeof(path), "/runtime.v1.%s", method) >= sizeof(path))
		errx(2, "no method %s", method);
	put_header(to, ":method", "POST");
	put_header(to, ":scheme", "http");
	put_header(to, ":path", path);
	put_header(to, ":authority", "localhost");
	put_header(to, "content-type", "application/grpc");
	put_header(to, "te", "trailers");
}

static void put_message(struct buffer *to, const char *text)
{
	static struct buffer message;
	uint8_t prefix[PREFIX_SIZE] = {0};

	encode(text, &message, false);
	for (int i = 0; i < 4; i++)
		prefix[1 + i] = message.size >> (24 - 8 * i);
	put(to, prefix, sizeof(prefix));
	put(to, message.bytes, message.size);
}

static void send_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;
	ssize_t sent;

	for (; size; at += sent, size -= sent) {
		sent = write(fd, at, size);
		if (sent <= 0)
			err(2, "write");
	}
}

static void receive_all(int fd, void *bytes, size_t size)
{
	char *at = bytes;
	ssize_t got;

	for (; size; at += got, size -= got) {
		got = read(fd, at, size);
		if (got < 0)
			err(2, "read");
		if (!got)
			errx(1, "the runtime ended the connection");
	}
}

static void ask(int fd, const char *method, const char *message)
{
	static struct buffer all, settings, headers, data;

	put_headers(&headers, method);
	put_message(&data, message);
	put(&all, PREFACE, strlen(PREFACE));
	put_frame(&all, SETTINGS, 0, 0, &settings);
	put_frame(&all, HEADERS, END_HEADERS, STREAM, &headers);
	put_frame(&all, DATA, END_STREAM, STREAM, &data);
	send_all(fd, all.bytes, all.size);
}

/* A method that succeeds has a message as its answer, if an empty one; one that fails has none. */
static void receive(int fd, struct buffer *answer)
{
	static struct buffer nothing, ack;
	static uint8_t payload[1 << 24];
	uint8_t head[HEAD_SIZE];
	uint32_t size;

	do {
		receive_all(fd, head, sizeof(head));
		size = head[0] << 16 | head[1] << 8 | head[2];
		receive_all(fd, payload, size);
		switch (head[3]) {
		case SETTINGS:
			if (head[4] & ACK)
				break;
			ack.size = 0;
			put_frame(&ack, SETTINGS, ACK, 0, &nothing);
			send_all(fd, ack.bytes, ack.size);
			break;
		case DATA:
			put(answer, payload, size);
			break;
		case RST_STREAM:
		case GOAWAY:
			errx(1, "the runtime ended the call");
		}
	} while ((head[3] != HEADERS && head[3] != DATA) || !(head[4] & END_STREAM));
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	static struct buffer answer;
	int fd;

	if (argc < 4 || argc > 5 || strlen(argv[1]) >= sizeof(address.sun_path))
		errx(2, "usage: cri SOCKET METHOD MESSAGE [FIELD]");
	strcpy(address.sun_path, argv[1]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err(2, "%s", argv[1]);
	ask(fd, argv[2], argv[3]);
	receive(fd, &answer);
	if (answer.size < PREFIX_SIZE)
		errx(1, "%s failed", argv[2]);
	if (argc == 5)
		print(answer.bytes + PREFIX_SIZE, answer.bytes + answer.size, argv[4]);
	return 0;
}
