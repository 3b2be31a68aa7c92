// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/transport.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/error.h"
#include "lib/module/announcements.h"

namespace umacct {

namespace {

constexpr int event_buffer_bytes = 4 << 20;

/// The largest part of a dump that the kernel sends.
constexpr std::size_t receive_buffer_bytes = 32 << 10;

struct SocketFree {
    void operator()(nl_sock *socket) const { nl_socket_free(socket); }
};

struct MessageFree {
    void operator()(nl_msg *message) const { nlmsg_free(message); }
};

struct BufferFree {
    void operator()(void *buffer) const { std::free(buffer); } // nl_recv() allocates with malloc
};

using Socket = std::unique_ptr<nl_sock, SocketFree>;
using Message = std::unique_ptr<nl_msg, MessageFree>;
using Buffer = std::unique_ptr<unsigned char, BufferFree>;

[[noreturn]] void throw_missing() {
    throw Error(Failure::missing, "the umacct kernel module is not loaded",
                "load it with 'modprobe umacct'");
}

/// libnl folds errno values together; the one it met is still in errno.
[[noreturn]] void throw_socket(const char *what) {
    throw Error(Failure::failed,
                std::string("cannot ") + what + ": " + std::generic_category().message(errno));
}

/// errno values that sandboxes return for a netlink socket. All else that may fail has nothing
/// to do with privilege.
bool is_kept_away(int code) {
    return failure_of(code) == Failure::permission || code == EAFNOSUPPORT ||
           code == EPROTONOSUPPORT;
}

Socket open_socket() {
    Socket socket(nl_socket_alloc());

    if (!socket)
        throw std::bad_alloc();
    if (genl_connect(socket.get()) < 0) {
        if (!is_kept_away(errno))
            throw_socket("open a netlink socket");
        throw Error(Failure::permission,
                    "cannot open a netlink socket: " + std::generic_category().message(errno),
                    "the module is asked over netlink: where a sandbox keeps it away, allow it "
                    "(in a systemd service, RestrictAddressFamilies=AF_NETLINK)");
    }
    nl_socket_set_msg_buf_size(socket.get(), receive_buffer_bytes);
    nl_socket_disable_msg_peek(socket.get());
    return socket;
}

std::span<const std::byte> bytes(const void *data, std::ptrdiff_t size) {
    return {static_cast<const std::byte *>(data), static_cast<std::size_t>(size > 0 ? size : 0)};
}

/// The attribute of that type; null where there is none.
nlattr *find(std::span<const std::byte> attributes, int type) {
    return nla_find(reinterpret_cast<const nlattr *>(attributes.data()),
                    static_cast<int>(attributes.size()), type);
}

/// An attribute's text, however it ends.
std::string text_of(const nlattr *attribute) {
    const auto *text = attribute != nullptr ? static_cast<const char *>(nla_data(attribute)) : "";

    return attribute != nullptr ? std::string(text, strnlen(text, nla_len(attribute))) : text;
}

/// Type of the request's attribute at that offset of its message, 0 for none.
std::uint16_t attribute_at(const Payload &request, std::uint32_t offset) {
    const auto *first = reinterpret_cast<const nlattr *>(request.data());
    const nlattr *at = nullptr;
    int rest = 0;

    nla_for_each_attr(at, first, static_cast<int>(request.size()), rest) {
        if (request.size() - static_cast<std::size_t>(rest) + NLMSG_HDRLEN + GENL_HDRLEN == offset)
            return static_cast<std::uint16_t>(nla_type(at));
    }
    return 0;
}

/// Throws what an error message, or a dump's end, says. code: the positive errno. at: where in
/// the message its extended acknowledgement is, if it has one.
[[noreturn]] void throw_refusal(int code, const nlmsghdr *header, std::size_t at,
                                const Payload &request) {
    const auto body = bytes(nlmsg_data(header), nlmsg_datalen(header));
    const bool is_extended = (header->nlmsg_flags & NLM_F_ACK_TLVS) != 0 && at <= body.size();
    const auto extended = body.subspan(is_extended ? at : body.size());
    const nlattr *offset = find(extended, NLMSGERR_ATTR_OFFS);
    const bool is_offset = offset != nullptr && nla_len(offset) >= 4;

    throw RequestError(code, text_of(find(extended, NLMSGERR_ATTR_MSG)),
                       is_offset ? attribute_at(request, nla_get_u32(offset)) : std::uint16_t{0});
}

/// An NLMSG_ERROR: the end of a request, well or badly.
void check_ack(const nlmsghdr *header, const Payload &request) {
    const auto *error = static_cast<const nlmsgerr *>(nlmsg_data(header));

    if (nlmsg_datalen(header) < static_cast<int>(sizeof(*error)))
        throw Error(Failure::failed, "cannot read the kernel's answer: it is truncated");
    if (error->error == 0)
        return;

    const std::size_t echoed = (header->nlmsg_flags & NLM_F_CAPPED) != 0
                                   ? 0
                                   : NLMSG_ALIGN(error->msg.nlmsg_len) - NLMSG_HDRLEN;
    throw_refusal(-error->error, header, sizeof(*error) + echoed, request);
}

/// An NLMSG_DONE: the end of a dump, which carries an error when it broke off.
void check_done(const nlmsghdr *header, const Payload &request) {
    int code = 0;

    if (nlmsg_datalen(header) < static_cast<int>(sizeof(code)))
        return;
    std::memcpy(&code, nlmsg_data(header), sizeof(code));
    if (code < 0)
        throw_refusal(-code, header, sizeof(code), request);
}

std::span<const std::byte> attributes_of(nlmsghdr *header) {
    const auto *genl = static_cast<const genlmsghdr *>(nlmsg_data(header));

    return bytes(genlmsg_attrdata(genl, 0), nlmsg_datalen(header) - static_cast<int>(GENL_HDRLEN));
}

Payload payload_of(nlmsghdr *header) {
    const auto attributes = attributes_of(header);

    return {attributes.begin(), attributes.end()};
}

/// Calls visit for each message of one datagram. Returns libnl's result: bytes, or negative.
int receive_datagram(nl_sock *socket, const std::function<void(nlmsghdr *)> &visit) {
    sockaddr_nl from{};
    unsigned char *raw = nullptr;
    const int size = nl_recv(socket, &from, &raw, nullptr);

    if (size <= 0)
        return size;

    const Buffer buffer(raw);
    int left = size;
    for (auto *header = reinterpret_cast<nlmsghdr *>(raw); nlmsg_ok(header, left);
         header = nlmsg_next(header, &left))
        visit(header);
    return size;
}

/// An announcement about the module; other families are ignored.
struct FamilyEvent {
    bool is_there = false;
    int number = -1;
};

std::optional<FamilyEvent> family_event(nlmsghdr *header) {
    if (header->nlmsg_type != GENL_ID_CTRL || nlmsg_datalen(header) < int{GENL_HDRLEN})
        return std::nullopt;

    const auto *genl = static_cast<const genlmsghdr *>(nlmsg_data(header));
    const Payload payload = payload_of(header);
    const bool is_there = genl->cmd == CTRL_CMD_NEWFAMILY;
    if ((!is_there && genl->cmd != CTRL_CMD_DELFAMILY) ||
        text_of(find(payload, CTRL_ATTR_FAMILY_NAME)) != UMACCT_FAMILY_NAME)
        return std::nullopt;
    const nlattr *number = find(payload, CTRL_ATTR_FAMILY_ID);
    return FamilyEvent{
        .is_there = is_there,
        .number = is_there && number != nullptr && nla_len(number) >= 2 ? nla_get_u16(number) : -1};
}

/// A member of the group in another network namespace hears nothing.
bool in_initial_network_namespace() {
    const std::filesystem::path settings = "/proc/sys/net/core";
    std::error_code ignored;

    // One of the settings that only the initial namespace has.
    return std::filesystem::exists(settings / "netdev_max_backlog", ignored) ||
           !std::filesystem::exists(settings, ignored);
}

class Netlink : public Transport {
public:
    Netlink()
        : socket_(open_socket()), family_(genl_ctrl_resolve(socket_.get(), UMACCT_FAMILY_NAME)) {
        const int on = 1;

        if (family_ < 0)
            throw_missing();
        // Errors without them have less detail.
        setsockopt(nl_socket_get_fd(socket_.get()), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
        setsockopt(nl_socket_get_fd(socket_.get()), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
    }

    Payload request(umacct_cmd command, const Payload &attributes) override {
        std::optional<Payload> answer;

        exchange(command, NLM_F_ACK, attributes, [&answer](std::span<const std::byte> part) {
            if (!answer)
                answer.emplace(part.begin(), part.end());
        });
        return answer.value_or(Payload{});
    }

    bool dump(umacct_cmd command, const Payload &attributes, const Take &take) override {
        return exchange(command, NLM_F_DUMP, attributes, take);
    }

    void subscribe() override {
        Socket events = open_socket();
        const int group =
            genl_ctrl_resolve_grp(events.get(), UMACCT_FAMILY_NAME, UMACCT_MCGRP_EVENTS);

        if (group < 0 || !in_initial_network_namespace())
            throw Error(
                Failure::failed,
                "cannot receive the module's events: they reach only the initial network namespace",
                "watch from the host's own network namespace");
        // The default buffer holds a few hundred events; a burst of refusals is more.
        nl_socket_set_buffer_size(events.get(), event_buffer_bytes, 0);
        nl_socket_disable_seq_check(events.get());
        if (nl_socket_add_membership(events.get(), group) < 0) {
            if (failure_of(errno) == Failure::permission)
                throw RequestError(EPERM, "listening to events takes CAP_NET_ADMIN", 0);
            throw_socket("join the group of events");
        }
        // The controller's own group: it says when the module goes away.
        nl_socket_add_membership(events.get(), GENL_ID_CTRL);
        events_ = std::move(events);
    }

    Received<Payload> receive(std::chrono::milliseconds timeout) override {
        pollfd ready{nl_socket_get_fd(events_.get()), POLLIN, 0};
        Received<Payload> received;

        if (poll(&ready, 1, timeout.count() < 0 ? -1 : static_cast<int>(timeout.count())) <= 0) {
            received.none = true;
            return received;
        }

        const int size = receive_datagram(events_.get(), [&](nlmsghdr *header) {
            if (header->nlmsg_type == family_)
                received.events.push_back(payload_of(header));
            else if (const auto event = family_event(header); event && !event->is_there)
                received.gone = true;
        });
        // ENOBUFS and ENOMEM are one to libnl, and mean the same here.
        if (size == -NLE_NOMEM)
            received.overrun = true;
        else if (size < 0 && size != -NLE_AGAIN && size != -NLE_INTR)
            throw_socket("read events");
        return received;
    }

private:
    /// Once more where the module was loaded anew meanwhile and has another number. Whether a dump
    /// was interrupted.
    bool exchange(umacct_cmd command, int flags, const Payload &attributes, const Take &take) {
        try {
            return exchange_once(command, flags, attributes, take);
        } catch (const RequestError &error) {
            // It is on its way out: netlink begins no dump of it any more.
            if (error.code() == EPROTONOSUPPORT)
                throw_missing();
            // netlink itself, which knows no such family, points at no attribute.
            if (error.code() != ENOENT || error.attribute() != 0)
                throw;
        }
        family_ = genl_ctrl_resolve(socket_.get(), UMACCT_FAMILY_NAME);
        if (family_ < 0)
            throw_missing();
        return exchange_once(command, flags, attributes, take);
    }

    bool exchange_once(umacct_cmd command, int flags, const Payload &attributes, const Take &take) {
        const std::uint32_t sequence = send(command, flags, attributes);
        bool interrupted = false;
        bool done = false;

        while (!done) {
            const int size = receive_datagram(socket_.get(), [&](nlmsghdr *header) {
                if (header->nlmsg_seq != sequence)
                    return;
                if ((header->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
                    interrupted = true;
                if (header->nlmsg_type == NLMSG_ERROR) {
                    done = true;
                    check_ack(header, attributes);
                } else if (header->nlmsg_type == NLMSG_DONE) {
                    done = true;
                    check_done(header, attributes);
                } else if (header->nlmsg_type == family_) {
                    take(attributes_of(header));
                }
            });
            if (size < 0 && size != -NLE_INTR)
                throw_socket("read the module's answer");
        }
        return interrupted;
    }

    /// Sends one request; its sequence number.
    std::uint32_t send(umacct_cmd command, int flags, const Payload &attributes) {
        const Message message(
            nlmsg_alloc_size(NLMSG_SPACE(GENL_HDRLEN + attributes.size()) + NLMSG_ALIGNTO));

        if (!message ||
            !genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family_, 0, flags,
                         static_cast<std::uint8_t>(command), UMACCT_FAMILY_VERSION) ||
            nlmsg_append(message.get(), const_cast<std::byte *>(attributes.data()),
                         attributes.size(), NLMSG_ALIGNTO) < 0)
            throw std::bad_alloc();
        if (nl_send_auto(socket_.get(), message.get()) < 0)
            throw_socket("ask the module");
        return nlmsg_hdr(message.get())->nlmsg_seq;
    }

    Socket socket_;
    int family_;
    Socket events_;
};

class Controller : public Announcements {
public:
    Controller() : socket_(open_socket()) {
        nl_socket_disable_seq_check(socket_.get());
        // Its group has the number of the family itself, in every kernel.
        if (nl_socket_add_membership(socket_.get(), GENL_ID_CTRL) < 0 ||
            nl_socket_set_nonblocking(socket_.get()) < 0)
            throw_socket("listen for the module");
        family_ = std::max(resolve(), -1);
    }

    int fd() const override { return nl_socket_get_fd(socket_.get()); }

    News take() override {
        News news;

        for (int size = 1; size > 0 || size == -NLE_INTR || size == -NLE_NOMEM;) {
            size = receive_datagram(socket_.get(), [&](nlmsghdr *header) {
                if (const auto event = family_event(header))
                    become(event->number, news);
            });
            if (size == -NLE_NOMEM)
                news.overrun = true;
            else if (size < 0 && size != -NLE_AGAIN && size != -NLE_INTR)
                throw_socket("listen for the module");
        }
        // A lost message shows in the sequence number, which is the family's own.
        if (news.overrun)
            become(resolve(), news);
        return news;
    }

private:
    static int resolve() { return genl_ctrl_resolve(open_socket().get(), UMACCT_FAMILY_NAME); }

    void become(int number, News &news) {
        number = std::max(number, -1);
        if (number == family_)
            return;
        news.unloaded = news.unloaded || family_ >= 0;
        news.loaded = number >= 0;
        family_ = number;
    }

    Socket socket_;
    int family_ = -1; ///< its number; negative where it isn't loaded
};

} // namespace

std::unique_ptr<Announcements> listen_to_controller() {
    return std::make_unique<Controller>();
}

std::unique_ptr<Transport> connect_netlink() {
    return std::make_unique<Netlink>();
}

} // namespace umacct
