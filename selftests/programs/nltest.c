// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nltest: talks to the umacct netlink family as no well-behaved client does, and
 * checks that every answer is an error that says why, and that nothing changed.
 * It builds its messages by hand: a library would refuse to.
 *
 *	nltest root		with the privilege to change settings
 *	nltest deny ID		without it, against account ID
 *	nltest nothing		without the privilege to see anything
 *	nltest enforced STATE	the driver is in this state, and changes are answered so
 *	nltest figures ID	account ID has the memory controller's figures
 *
 * These print TAP.
 *
 *	nltest cost ROUNDS	prints what STATUS_GET takes at least, in nanoseconds, which
 *				are instructions under QEMU's icount
 *
 *	nltest accounts		prints names of figures, and a line with these for each account;
 *				blanks in a path are question marks
 *
 *	nltest toggle ID ONE OTHER ROUNDS
 *				sets the hard limit of account ID to ONE and to OTHER by turns
 *
 *	nltest slowly [stop]	lists accounts and clients in small pieces, with a pause after
 *				each, and prints how many there were, and whether the list is
 *				marked as interrupted. With "stop", it stops itself after the
 *				first piece: whoever has changed something meanwhile goes on
 *				with SIGCONT
 *
 *	nltest storm SEED SECONDS
 *				sends requests at random, as the specification has them, or
 *				nearly, or not at all, and prints how many were answered how
 *
 * The rest are listeners, until they are killed. When they are, they say "listening" to
 * standard error:
 *
 *	nltest listen		prints each event: TYPE SEQ COUNT SIZE PATH
 *	nltest eavesdrop	likewise, and asks for those of other network namespaces
 *	nltest deaf		never reads, and wants the sender to know it
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "umacct.h"

#define SMALL_PIECE		8192
#define PAUSE_US		300000
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define UNKNOWN_COMMAND		99
#define UNKNOWN_ATTRIBUTE	999
#define NO_SUCH_ACCOUNT		0x7fffffffffffull
#define ROOT_ACCOUNT		1ull

#ifndef SOL_NETLINK
#define SOL_NETLINK		270
#endif

struct request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	char attributes[1024];
};

struct reply {
	uint64_t present;		/* a bit for each attribute that an object had */
	uint32_t driver_state;		/* the answer to ACCOUNT_SET has it */
	int error;			/* errno, 0 if it was done */
	bool interrupted;		/* a dump that must be made again */
	char message[256];		/* the extended ack's text */
	uint32_t objects;
	uint64_t checksum;		/* sum of the objects' figures */
};

static int sock = -1;
static bool slowly;
static bool stops;
static void (*show_object)(const struct nlmsghdr *header);
static uint16_t family;
static uint32_t events_group;
static int tests;
static int failures;

static void result(bool passed, const char *description)
{
	tests++;
	failures += !passed;
	printf("%sok %d - %s\n", passed ? "" : "not ", tests, description);
	fflush(stdout);
}

/* --- messages --------------------------------------------------------------- */

static struct request new_request(uint16_t type, uint8_t command, uint16_t flags)
{
	return (struct request){
		.header = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
		},
		.genl = { .cmd = command, .version = UMACCT_FAMILY_VERSION },
	};
}

static struct nlattr *put(struct request *request, uint16_t type, const void *data, uint16_t size)
{
	struct nlattr *attribute = (void *)((char *)request + request->header.nlmsg_len);

	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + size;
	memcpy((char *)attribute + NLA_HDRLEN, data, size);
	request->header.nlmsg_len += NLA_ALIGN(attribute->nla_len);
	return attribute;
}

static void put_u32(struct request *request, uint16_t type, uint32_t value)
{
	put(request, type, &value, sizeof(value));
}

static void put_u64(struct request *request, uint16_t type, uint64_t value)
{
	put(request, type, &value, sizeof(value));
}

static void open_socket(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct timeval timeout = { .tv_sec = 30 };
	int one = 1;

	if (sock >= 0)
		close(sock);
	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof(address))) {
		perror("netlink");
		exit(1);
	}
	setsockopt(sock, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(sock, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

static void read_extended_ack(const struct nlmsghdr *header, struct reply *reply)
{
	const char *position = (const char *)NLMSG_DATA(header) + sizeof(struct nlmsgerr);
	const char *end = (const char *)header + header->nlmsg_len;

	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	while (position + NLA_HDRLEN <= end) {
		const struct nlattr *attribute = (const void *)position;

		if (attribute->nla_len < NLA_HDRLEN)
			return;
		if (attribute->nla_type == NLMSGERR_ATTR_MSG)
			snprintf(reply->message, sizeof(reply->message), "%.*s",
				 attribute->nla_len - NLA_HDRLEN, position + NLA_HDRLEN);
		position += NLA_ALIGN(attribute->nla_len);
	}
}

/* The attributes from one place to another: calls a function for each. */
static void each_attribute(const char *position, const char *end,
			   void (*visit)(const struct nlattr *attribute, void *context),
			   void *context)
{
	for (; position + NLA_HDRLEN <= end;
	     position += NLA_ALIGN(((const struct nlattr *)position)->nla_len)) {
		if (((const struct nlattr *)position)->nla_len < NLA_HDRLEN)
			return;
		visit((const void *)position, context);
	}
}

static void each_attribute_of(const struct nlmsghdr *header,
			      void (*visit)(const struct nlattr *attribute, void *context),
			      void *context)
{
	each_attribute((const char *)NLMSG_DATA(header) + GENL_HDRLEN,
		       (const char *)header + header->nlmsg_len, visit, context);
}

static uint16_t type_of(const struct nlattr *attribute)
{
	return attribute->nla_type & NLA_TYPE_MASK;
}

static const void *data_of(const struct nlattr *attribute)
{
	return (const char *)attribute + NLA_HDRLEN;
}

static void note_attribute(const struct nlattr *attribute, void *context)
{
	struct reply *reply = context;

	reply->present |= 1ull << (type_of(attribute) % 64);
	/* Objects of other kinds have something else there, which is not read. */
	if (type_of(attribute) == UMACCT_A_ACCOUNT_DRIVER_STATE)
		memcpy(&reply->driver_state, data_of(attribute), sizeof(reply->driver_state));
}

static bool has(const struct reply *reply, int attribute)
{
	return reply->present & (1ull << attribute);
}

static void add_object(const struct nlmsghdr *header, struct reply *reply)
{
	const unsigned char *data = NLMSG_DATA(header);

	each_attribute_of(header, note_attribute, reply);
	if (show_object)
		show_object(header);
	reply->objects++;
	for (uint32_t i = 0; i < header->nlmsg_len - NLMSG_HDRLEN; i++)
		reply->checksum = reply->checksum * 31 + data[i];
}

/* Sends, and reads until the answer is complete. */
static struct reply transact(const struct request *request)
{
	static char buffer[65536];
	struct reply reply = { 0 };
	const struct nlmsghdr *header;
	ssize_t length;

	if (send(sock, request, request->header.nlmsg_len, 0) < 0) {
		reply.error = errno;
		return reply;
	}
	for (;;) {
		length = recv(sock, buffer, slowly ? SMALL_PIECE : sizeof(buffer), 0);
		if (length < 0) {
			reply.error = errno;
			return reply;
		}
		if (stops)
			raise(SIGSTOP);
		else if (slowly)
			usleep(PAUSE_US);
		stops = false;
		for (header = (void *)buffer; NLMSG_OK(header, length);
		     header = NLMSG_NEXT(header, length)) {
			if (header->nlmsg_flags & NLM_F_DUMP_INTR)
				reply.interrupted = true;
			if (header->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *error = NLMSG_DATA(header);

				reply.error = -error->error;
				read_extended_ack(header, &reply);
				return reply;
			}
			if (header->nlmsg_type == NLMSG_DONE) {
				reply.error = -*(const int *)NLMSG_DATA(header);
				return reply;
			}
			add_object(header, &reply);
		}
	}
}

/* The family has one group of listeners. */
static void read_family(const struct nlattr *attribute, void *context)
{
	const char *end = (const char *)attribute + attribute->nla_len;
	int depth = *(int *)(context ? context : &(int){ 0 });

	if (depth == 2) {
		if (type_of(attribute) == CTRL_ATTR_MCAST_GRP_ID)
			memcpy(&events_group, data_of(attribute), sizeof(events_group));
	} else if (depth == 1 || type_of(attribute) == CTRL_ATTR_MCAST_GROUPS) {
		depth++;
		each_attribute(data_of(attribute), end, read_family, &depth);
	} else if (type_of(attribute) == CTRL_ATTR_FAMILY_ID) {
		memcpy(&family, data_of(attribute), sizeof(family));
	}
}

static void find_family(void)
{
	static char buffer[8192];
	struct request request = new_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	const struct nlmsghdr *header = (void *)buffer;

	request.genl.version = 1;
	request.header.nlmsg_flags &= ~NLM_F_ACK;
	put(&request, CTRL_ATTR_FAMILY_NAME, UMACCT_FAMILY_NAME, sizeof(UMACCT_FAMILY_NAME));
	send(sock, &request, request.header.nlmsg_len, 0);
	if (recv(sock, buffer, sizeof(buffer), 0) < 0 || header->nlmsg_type == NLMSG_ERROR) {
		printf("1..0 # SKIP the umacct netlink family is not there\n");
		exit(4);
	}
	each_attribute_of(header, read_family, NULL);
}

/* --- what the module says ---------------------------------------------------- */

static struct reply dump(uint8_t command)
{
	struct request request = new_request(family, command, NLM_F_DUMP);

	return transact(&request);
}

/* --- the tests --------------------------------------------------------------- */

static void refused(const char *description, const struct request *request, int wanted)
{
	struct reply reply = transact(request);

	result(reply.error == wanted && reply.message[0], description);
	if (reply.error != wanted)
		printf("# errno %d (%s), wanted %d\n", reply.error, strerror(reply.error), wanted);
	printf("# says: %s\n", reply.message[0] ? reply.message : "(nothing)");
}

/* The netlink core answers these itself, without a text of its own. */
static void refused_by_core(const char *description, const struct request *request, int wanted)
{
	struct reply reply = transact(request);

	result(reply.error == wanted, description);
	if (reply.error != wanted)
		printf("# errno %d (%s), wanted %d\n", reply.error, strerror(reply.error), wanted);
}

static void test_commands(void)
{
	struct request request = new_request(family, UNKNOWN_COMMAND, 0);

	refused_by_core("an unknown command", &request, EOPNOTSUPP);
	request = new_request(family, UMACCT_CMD_CLIENT_GET, 0);
	refused_by_core("a do of what can only be dumped", &request, EOPNOTSUPP);
	request = new_request(family, UMACCT_CMD_STATUS_GET, NLM_F_DUMP);
	refused_by_core("a dump of what can't be dumped", &request, EOPNOTSUPP);
	request = new_request(family, UMACCT_CMD_EVENT_NTF, 0);
	refused_by_core("an event, which only the module sends", &request, EOPNOTSUPP);
	request = new_request(family, UMACCT_CMD_STATUS_GET, 0);
	put_u64(&request, UMACCT_A_STATUS_USAGE, 0);
	refused_by_core("STATUS_GET with an attribute, of which it takes none", &request, EINVAL);
	request = new_request(family, UMACCT_CMD_STATUS_GET, 0);
	put_u64(&request, UNKNOWN_ATTRIBUTE, 0);
	refused_by_core("STATUS_GET with an unknown attribute", &request, EINVAL);
	request = new_request(family, UMACCT_CMD_RECLAIM, 0);
	put_u64(&request, UNKNOWN_ATTRIBUTE, 0);
	refused_by_core("RECLAIM with an unknown attribute", &request, EINVAL);
}

static void test_account_get(void)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);

	refused("ACCOUNT_GET without an id", &request, EINVAL);
	put_u64(&request, UMACCT_A_ACCOUNT_ID, NO_SUCH_ACCOUNT);
	refused("ACCOUNT_GET of a cgroup that doesn't exist", &request, ENOENT);
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	put_u32(&request, UMACCT_A_ACCOUNT_ID, 1);
	refused("ACCOUNT_GET with an id of 4 bytes", &request, EINVAL);
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	put_u64(&request, UMACCT_A_ACCOUNT_ID, ROOT_ACCOUNT);
	put_u64(&request, UNKNOWN_ATTRIBUTE, 0);
	refused("ACCOUNT_GET with an unknown attribute", &request, EINVAL);
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, NLM_F_DUMP);
	put_u64(&request, UNKNOWN_ATTRIBUTE, 0);
	refused("a dump with an unknown attribute", &request, EINVAL);
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, NLM_F_DUMP);
	put_u64(&request, UMACCT_A_ACCOUNT_ID, NO_SUCH_ACCOUNT);
	result(transact(&request).objects == 0,
	       "a dump of the subtree of a cgroup that doesn't exist is empty");
}

static void test_broken_attributes(void)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	uint64_t id = ROOT_ACCOUNT;
	struct nlattr *attribute = put(&request, UMACCT_A_ACCOUNT_ID, &id, sizeof(id));

	attribute->nla_len = 200;
	refused("an attribute that is longer than its message", &request, EINVAL);
	attribute->nla_len = 2;
	refused("an attribute that is shorter than its header", &request, EINVAL);
	attribute->nla_len = NLA_HDRLEN + sizeof(id);
	attribute->nla_type |= NLA_F_NESTED;
	refused("a number that claims to be a nest", &request, EINVAL);
}

static struct request account_set(uint64_t id)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_SET, 0);

	put_u64(&request, UMACCT_A_ACCOUNT_ID, id);
	return request;
}

static void test_account_set(uint64_t id)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_SET, 0);

	put_u64(&request, UMACCT_A_ACCOUNT_HARD, 0);
	refused("ACCOUNT_SET without an id", &request, EINVAL);
	request = account_set(id);
	refused("ACCOUNT_SET of nothing", &request, EINVAL);
	request = account_set(NO_SUCH_ACCOUNT);
	put_u64(&request, UMACCT_A_ACCOUNT_HARD, 0);
	refused("ACCOUNT_SET of a cgroup that doesn't exist", &request, ENOENT);
	request = account_set(id);
	put_u64(&request, UMACCT_A_ACCOUNT_SOFT, 2 << 20);
	put_u64(&request, UMACCT_A_ACCOUNT_HARD, 1 << 20);
	refused("a soft limit above the hard one", &request, EINVAL);
	request = account_set(id);
	put_u64(&request, UMACCT_A_ACCOUNT_THROTTLE, 2000000001);
	refused("a throttle of more than two seconds", &request, ERANGE);
	request = account_set(id);
	put_u64(&request, UMACCT_A_ACCOUNT_USAGE, 0);
	refused("ACCOUNT_SET of what can only be read", &request, EINVAL);
	request = account_set(id);
	put_u64(&request, UMACCT_A_ACCOUNT_HARD, 1 << 20);
	put_u64(&request, UNKNOWN_ATTRIBUTE, 0);
	refused("a good limit beside an unknown attribute", &request, EINVAL);
	request = account_set(id);
	put_u32(&request, UMACCT_A_ACCOUNT_CHARGE, 77);
	refused("a charge mode that doesn't exist", &request, ERANGE);
	request = account_set(id);
	put_u32(&request, UMACCT_A_ACCOUNT_VIEW, 2);
	refused("a view that is neither on nor off", &request, ERANGE);
	request = account_set(id);
	put(&request, UMACCT_A_ACCOUNT_HARD, "1", 1);
	refused("a limit of one byte", &request, EINVAL);
}

static void test_config_set(void)
{
	struct request request = new_request(family, UMACCT_CMD_CONFIG_SET, 0);

	refused("CONFIG_SET of nothing", &request, EINVAL);
	put_u32(&request, UMACCT_A_STATUS_CHARGE_DEFAULT, UMACCT_CHARGE_INHERIT);
	refused("a default that leaves the question open", &request, ERANGE);
	request = new_request(family, UMACCT_CMD_CONFIG_SET, 0);
	put_u64(&request, UMACCT_A_STATUS_USAGE, 0);
	refused("CONFIG_SET of what can only be read", &request, EINVAL);
	request = new_request(family, UMACCT_CMD_CONFIG_SET, 0);
	put_u64(&request, UMACCT_A_STATUS_RESERVE, 1ULL << 50);
	refused("a reserve of more than the machine's memory", &request, ERANGE);
}

/* Always the same sequence for a seed, so that what it finds can be found again. */
static uint32_t random_state = 2463534242u;

static uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

/* Bodies of noise. The commands that set take numbers of 4 and 8 bytes only, so
 * attributes of 3 bytes can never be a valid request by chance.
 */
static void test_noise(void)
{
	static const char noise[] = "\x07\xff\x00";
	int accepted = 0;

	for (int i = 0; i < 5000; i++) {
		bool set = i & 1;
		struct request request = new_request(family, set ? UMACCT_CMD_ACCOUNT_SET :
						     1 + next_random() % 8, 0);

		for (int n = next_random() % 8; n >= 0; n--)
			put(&request, next_random() % 64, noise, 3);
		accepted += !transact(&request).error;
	}
	result(accepted == 0, "5,000 requests of noise are all refused");
	if (accepted)
		printf("# %d were accepted\n", accepted);
}

/* A dump that is not read to its end does no harm to the next reader. */
static void test_abandoned_dumps(uint32_t objects)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_GET, NLM_F_DUMP);
	char byte;

	for (int i = 0; i < 100; i++) {
		send(sock, &request, request.header.nlmsg_len, 0);
		recv(sock, &byte, 1, MSG_TRUNC);
		open_socket();
	}
	result(dump(UMACCT_CMD_ACCOUNT_GET).objects == objects,
	       "after 100 dumps left half-way, a dump is whole");
}

/* The limits of numbers, and those that mean something here. */
static uint64_t random_number(void)
{
	static const uint64_t numbers[] = {
		0, 1, 2, 3, 4095, 4096, 4097, 1 << 20, UINT32_MAX, 1ull << 32, INT64_MAX,
		1ull << 63, UMACCT_UNLIMITED - 1, UMACCT_UNLIMITED,
	};

	if (next_random() % 4)
		return numbers[next_random() % ARRAY_SIZE(numbers)];
	return (uint64_t)next_random() << 32 | next_random();
}

/* An attribute that a request may have: of its type, of another's size, or cut. */
static void put_random(struct request *request, uint64_t id)
{
	static const uint16_t known[] = {
		UMACCT_A_ACCOUNT_ID, UMACCT_A_ACCOUNT_SOFT, UMACCT_A_ACCOUNT_HARD,
		UMACCT_A_ACCOUNT_THROTTLE, UMACCT_A_ACCOUNT_VIEW, UMACCT_A_ACCOUNT_CHARGE,
		UMACCT_A_STATUS_RESERVE, UMACCT_A_STATUS_CHARGE_DEFAULT,
	};
	uint16_t type = known[next_random() % ARRAY_SIZE(known)];
	char noise[48];

	if (!(next_random() % 8))
		type = next_random();
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = next_random();
	switch (next_random() % 8) {
	case 0:
		put(request, type, noise, next_random() % sizeof(noise));
		break;
	case 1:
		put(request, type, noise, 4)->nla_len = next_random();
		break;
	case 2:
	case 3:
		put_u32(request, type, random_number());
		break;
	case 4:
		put_u64(request, UMACCT_A_ACCOUNT_ID, id);
		break;
	default:
		put_u64(request, type, random_number());
	}
}

static struct request random_request(uint64_t id)
{
	static const uint16_t flags[] = { 0, 0, 0, 0, NLM_F_DUMP, NLM_F_ECHO, NLM_F_ROOT, 0xff00 };
	uint8_t command = next_random() % 16 ? 1 + next_random() % UMACCT_CMD_MAX : next_random();
	struct request request =
		new_request(family, command, flags[next_random() % ARRAY_SIZE(flags)]);

	for (int n = next_random() % 6; n > 0; n--)
		put_random(&request, id);
	/* Shorter than its header nothing is answered at all. */
	if (!(next_random() % 16))
		request.header.nlmsg_len = NLMSG_HDRLEN +
			next_random() % (request.header.nlmsg_len - NLMSG_HDRLEN + 1);
	if (!(next_random() % 64))
		request.genl.version = next_random();
	return request;
}

static int run_storm(uint32_t seed, unsigned int seconds)
{
	time_t end = time(NULL) + seconds;
	unsigned long long sent = 0, done = 0, changed = 0, unanswered = 0;
	uint64_t id = ROOT_ACCOUNT;

	random_state = seed * 2654435761u | 1;
	while (time(NULL) < end) {
		struct request request = random_request(id);
		bool sets = request.genl.cmd == UMACCT_CMD_ACCOUNT_SET ||
			    request.genl.cmd == UMACCT_CMD_CONFIG_SET;
		struct reply reply = transact(&request);

		sent++;
		done += !reply.error;
		changed += !reply.error && sets && !(request.header.nlmsg_flags & NLM_F_DUMP);
		if (reply.error == EAGAIN) {
			unanswered++;
			open_socket();
		}
		/* Any cgroup's number; most are small. */
		if (!(next_random() % 16))
			id = next_random() % 4096;
	}
	printf("messages=%llu done=%llu changed=%llu unanswered=%llu\n", sent, done, changed,
	       unanswered);
	return 0;
}

static int finish(void)
{
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}

static int run_root(void)
{
	struct reply before = dump(UMACCT_CMD_ACCOUNT_GET);
	struct reply after;

	result(!before.error && before.objects > 100 && !before.interrupted,
	       "a dump of more accounts than one message holds");
	printf("# %u accounts\n", before.objects);
	test_commands();
	test_account_get();
	test_broken_attributes();
	test_account_set(ROOT_ACCOUNT);
	test_config_set();
	test_noise();
	test_abandoned_dumps(before.objects);

	after = dump(UMACCT_CMD_ACCOUNT_GET);
	result(after.objects == before.objects && after.checksum == before.checksum,
	       "no account is changed by all this");
	return finish();
}

static void test_status_of_others(void)
{
	static const int numbers[] = {
		UMACCT_A_STATUS_DRIVER_USAGE, UMACCT_A_STATUS_DRIVER_PEAK,
		UMACCT_A_STATUS_UNTRACKED, UMACCT_A_STATUS_UNTRACKED_COUNT,
		UMACCT_A_STATUS_STALE_COUNT, UMACCT_A_STATUS_ACCOUNTS,
		UMACCT_A_STATUS_CLIENTS, UMACCT_A_STATUS_RECORDS,
		UMACCT_A_STATUS_RESERVE, UMACCT_A_STATUS_RESERVE_COUNT,
		UMACCT_A_STATUS_CHARGE_DEFAULT, UMACCT_A_STATUS_EVENTS_SENT,
		UMACCT_A_STATUS_EVENTS_LOST, UMACCT_A_STATUS_UNATTRIBUTED_COUNT,
		UMACCT_A_STATUS_POOLS,
	};
	struct request request = new_request(family, UMACCT_CMD_STATUS_GET, 0);
	struct reply reply = transact(&request);
	bool told = false;

	result(has(&reply, UMACCT_A_STATUS_MODULE_VERSION) &&
	       has(&reply, UMACCT_A_STATUS_DRIVER_STATE) && has(&reply, UMACCT_A_STATUS_USAGE),
	       "the status has a version, a state and a usage");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		told = told || has(&reply, numbers[i]);
	result(!told, "and no number that is not one's own");
}

/* Unprivileged, in the root of the hierarchy: all that isn't in cgroups is there. */
static int run_nothing(void)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);

	test_status_of_others();
	result(dump(UMACCT_CMD_ACCOUNT_GET).objects == 0, "a dump of accounts has none");
	result(dump(UMACCT_CMD_CLIENT_GET).objects == 0, "a dump of processes has none");
	put_u64(&request, UMACCT_A_ACCOUNT_ID, ROOT_ACCOUNT);
	refused("ACCOUNT_GET of the root", &request, EPERM);
	return finish();
}

static int run_enforced(uint32_t state)
{
	struct request request = account_set(ROOT_ACCOUNT);
	struct reply reply;

	put_u64(&request, UMACCT_A_ACCOUNT_SOFT, UMACCT_UNLIMITED);
	reply = transact(&request);
	result(!reply.error && has(&reply, UMACCT_A_ACCOUNT_ID) &&
	       has(&reply, UMACCT_A_ACCOUNT_DRIVER_STATE), "ACCOUNT_SET tells the driver's state");
	result(reply.driver_state == state, "which is the right one");
	result(has(&reply, UMACCT_A_ACCOUNT_REASON) == (state != UMACCT_DRIVER_HOOKED),
	       "and why nothing enforces it, if nothing does");
	request = new_request(family, UMACCT_CMD_CONFIG_SET, 0);
	put_u64(&request, UMACCT_A_STATUS_RESERVE, 0);
	reply = transact(&request);
	result(!reply.error && has(&reply, UMACCT_A_STATUS_DRIVER_STATE),
	       "CONFIG_SET tells the driver's state");
	result(has(&reply, UMACCT_A_STATUS_REASON) == (state != UMACCT_DRIVER_HOOKED),
	       "and why nothing enforces it, if nothing does");
	return finish();
}

static int run_figures(uint64_t id)
{
	struct request request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	struct reply reply;

	put_u64(&request, UMACCT_A_ACCOUNT_ID, id);
	reply = transact(&request);
	result(!reply.error && has(&reply, UMACCT_A_ACCOUNT_MEMORY_CURRENT),
	       "ACCOUNT_GET tells memory.current");
	return finish();
}

static int run_slowly(bool and_stop)
{
	struct reply accounts, clients;

	slowly = true;
	stops = and_stop;
	accounts = dump(UMACCT_CMD_ACCOUNT_GET);
	clients = dump(UMACCT_CMD_CLIENT_GET);
	printf("accounts=%u interrupted=%d clients=%u interrupted=%d\n", accounts.objects,
	       accounts.interrupted, clients.objects, clients.interrupted);
	return accounts.error || clients.error;
}

static const struct figure {
	const char *name;
	int attribute;
} figures[] = {
	{ "usage", UMACCT_A_ACCOUNT_USAGE },
	{ "managed", UMACCT_A_ACCOUNT_MANAGED },
	{ "metadata", UMACCT_A_ACCOUNT_METADATA },
	{ "local", UMACCT_A_ACCOUNT_LOCAL },
	{ "peak", UMACCT_A_ACCOUNT_PEAK },
	{ "charged", UMACCT_A_ACCOUNT_CHARGED },
	{ "allocs", UMACCT_A_ACCOUNT_ALLOCS },
	{ "frees", UMACCT_A_ACCOUNT_FREES },
	{ "failures", UMACCT_A_ACCOUNT_FAILURES },
	{ "refusals", UMACCT_A_ACCOUNT_REFUSALS },
	{ "hard", UMACCT_A_ACCOUNT_HARD },
	{ "soft", UMACCT_A_ACCOUNT_SOFT },
};

struct account {
	uint64_t id;
	char path[4096];
	uint64_t values[ARRAY_SIZE(figures)];
};

static void read_account(const struct nlattr *attribute, void *context)
{
	struct account *account = context;

	if (type_of(attribute) == UMACCT_A_ACCOUNT_ID)
		memcpy(&account->id, data_of(attribute), sizeof(account->id));
	if (type_of(attribute) == UMACCT_A_ACCOUNT_PATH)
		snprintf(account->path, sizeof(account->path), "%s",
			 (const char *)data_of(attribute));
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		if (type_of(attribute) == figures[i].attribute)
			memcpy(&account->values[i], data_of(attribute), sizeof(uint64_t));
}

static void print_account(const struct nlmsghdr *header)
{
	struct account account = { 0 };
	const uint64_t *value = account.values;

	each_attribute_of(header, read_account, &account);
	for (char *at = account.path; *at; at++)
		if (*(unsigned char *)at <= ' ')
			*at = '?';
	printf("%llu %s %llu", (unsigned long long)account.id, account.path,
	       (unsigned long long)(value[0] - value[1] - value[2]));
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		if (value[i] == UMACCT_UNLIMITED)
			printf(" max");
		else
			printf(" %llu", (unsigned long long)value[i]);
	putchar('\n');
}

static int run_accounts(void)
{
	printf("id path system");
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		printf(" %s", figures[i].name);
	putchar('\n');
	show_object = print_account;
	return dump(UMACCT_CMD_ACCOUNT_GET).error;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* The kernel answers within send(); reading the answer is not its cost. */
static int run_cost(unsigned int rounds)
{
	struct request request = new_request(family, UMACCT_CMD_STATUS_GET, 0);
	static char answer[65536];
	uint64_t least = UINT64_MAX;

	request.header.nlmsg_flags &= ~NLM_F_ACK;
	while (rounds--) {
		uint64_t before = now(), took;

		if (send(sock, &request, request.header.nlmsg_len, 0) < 0)
			return 1;
		took = now() - before;
		least = took < least ? took : least;
		if (recv(sock, answer, sizeof(answer), 0) < 0)
			return 1;
	}
	printf("%llu\n", (unsigned long long)least);
	return 0;
}

/* --- listeners ---------------------------------------------------------------- */

static void join_events(void)
{
	if (setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &events_group,
		       sizeof(events_group))) {
		perror("events");
		exit(1);
	}
	fputs("listening\n", stderr);
}

struct told {
	uint32_t type;
	uint64_t seq, count, size;
	const char *path;
};

static void read_event(const struct nlattr *attribute, void *context)
{
	struct told *told = context;

	switch (type_of(attribute)) {
	case UMACCT_A_EVENT_TYPE:
		memcpy(&told->type, data_of(attribute), sizeof(told->type));
		break;
	case UMACCT_A_EVENT_SEQ:
		memcpy(&told->seq, data_of(attribute), sizeof(told->seq));
		break;
	case UMACCT_A_EVENT_COUNT:
		memcpy(&told->count, data_of(attribute), sizeof(told->count));
		break;
	case UMACCT_A_EVENT_SIZE:
		memcpy(&told->size, data_of(attribute), sizeof(told->size));
		break;
	case UMACCT_A_EVENT_PATH:
		told->path = data_of(attribute);
		break;
	}
}

static int run_listen(void)
{
	static char buffer[65536];
	struct timeval forever = { 0 };

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	join_events();
	for (;;) {
		struct told told = { .count = 1, .path = "" };
		const struct nlmsghdr *header = (void *)buffer;
		ssize_t length = recv(sock, buffer, sizeof(buffer), 0);

		if (length < 0 && errno == ENOBUFS) {
			printf("overrun\n");
		} else if (length < 0) {
			perror("events");
			return 1;
		} else if (NLMSG_OK(header, length)) {
			each_attribute_of(header, read_event, &told);
			printf("%u %llu %llu %llu %s\n", told.type, (unsigned long long)told.seq,
			       (unsigned long long)told.count, (unsigned long long)told.size,
			       told.path);
		}
		fflush(stdout);
	}
}

static int run_eavesdrop(void)
{
	int one = 1;

	if (setsockopt(sock, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &one, sizeof(one))) {
		perror("NETLINK_LISTEN_ALL_NSID");
		return 1;
	}
	return run_listen();
}

static _Noreturn void run_deaf(void)
{
	int one = 1;

	/* The kernel makes it the least there is: two events fill it. */
	setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one));
	setsockopt(sock, SOL_NETLINK, NETLINK_BROADCAST_ERROR, &one, sizeof(one));
	join_events();
	for (;;)
		pause();
}

static int run_toggle(uint64_t id, const uint64_t limits[2], unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		struct request request = account_set(id);
		struct reply reply;

		put_u64(&request, UMACCT_A_ACCOUNT_HARD, limits[i % 2]);
		reply = transact(&request);
		if (reply.error) {
			fprintf(stderr, "ACCOUNT_SET: %s\n", strerror(reply.error));
			return 1;
		}
	}
	return 0;
}

static int run_deny(uint64_t id)
{
	struct request request = account_set(id);

	put_u64(&request, UMACCT_A_ACCOUNT_HARD, UMACCT_UNLIMITED);
	refused("ACCOUNT_SET by somebody without privilege", &request, EPERM);
	request = new_request(family, UMACCT_CMD_CONFIG_SET, 0);
	put_u64(&request, UMACCT_A_STATUS_RESERVE, 0);
	refused("CONFIG_SET by somebody without privilege", &request, EPERM);
	request = new_request(family, UMACCT_CMD_RECLAIM, 0);
	refused("RECLAIM by somebody without privilege", &request, EPERM);
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	put_u64(&request, UMACCT_A_ACCOUNT_ID, ROOT_ACCOUNT);
	refused("ACCOUNT_GET of an account outside one's own subtree", &request, EPERM);
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	put_u64(&request, UMACCT_A_ACCOUNT_ID, id);
	result(!transact(&request).error, "ACCOUNT_GET of one's own");
	request = new_request(family, UMACCT_CMD_ACCOUNT_GET, 0);
	put_u64(&request, UMACCT_A_ACCOUNT_ID, NO_SUCH_ACCOUNT);
	refused("ACCOUNT_GET of what doesn't exist, as of what is somebody else's", &request,
		EPERM);
	test_status_of_others();
	return finish();
}

int main(int argc, char **argv)
{
	open_socket();
	find_family();
	if (argc == 2 && !strcmp(argv[1], "root"))
		return run_root();
	if (argc == 3 && !strcmp(argv[1], "deny"))
		return run_deny(strtoull(argv[2], NULL, 10));
	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return run_nothing();
	if (argc == 3 && !strcmp(argv[1], "enforced"))
		return run_enforced(strtoul(argv[2], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "figures"))
		return run_figures(strtoull(argv[2], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "cost"))
		return run_cost(strtoul(argv[2], NULL, 10));
	if (argc == 2 && !strcmp(argv[1], "accounts"))
		return run_accounts();
	if (argc == 6 && !strcmp(argv[1], "toggle"))
		return run_toggle(strtoull(argv[2], NULL, 10),
				  (const uint64_t[]){ strtoull(argv[3], NULL, 10),
						      strtoull(argv[4], NULL, 10) },
				  strtoul(argv[5], NULL, 10));
	if (argc == 2 && !strcmp(argv[1], "slowly"))
		return run_slowly(false);
	if (argc == 3 && !strcmp(argv[1], "slowly") && !strcmp(argv[2], "stop"))
		return run_slowly(true);
	if (argc == 4 && !strcmp(argv[1], "storm"))
		return run_storm(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	if (argc == 2 && !strcmp(argv[1], "listen"))
		return run_listen();
	if (argc == 2 && !strcmp(argv[1], "eavesdrop"))
		return run_eavesdrop();
	if (argc == 2 && !strcmp(argv[1], "deaf"))
		run_deaf();
	fprintf(stderr, "usage: %s root | deny ID | nothing | enforced STATE | figures ID |\n"
		"              cost ROUNDS | accounts | toggle ID ONE OTHER ROUNDS | slowly [stop] |\n"
		"              storm SEED SECONDS |\n"
		"              listen | eavesdrop | deaf\n",
		argv[0]);
	return 2;
}
