// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/report/redact.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <random>

#include <fmt/format.h>

namespace umacct::tool {

namespace {

/// Parts of a path that say nothing of whose it is.
constexpr std::array common{
    "system.slice",   "user.slice",
    "machine.slice",  "init.scope",
    "kubepods.slice", "kubepods-besteffort.slice",
    "kubepods",       "besteffort",
    "burstable",      "kubepods-burstable.slice",
};

constexpr std::array suffixes{".service", ".scope", ".slice"};

/// Kinds that an owner's label begins with.
constexpr std::array runtimes{"docker",     "podman", "containerd", "cri-o",
                              "kubernetes", "lxc",    "pod"};

/// Folders whose contents have the same names on every machine, from programs and packages.
/// /sys/fs/cgroup, /run, /proc/PID and /dev/shm are none of them.
constexpr std::array system_folders{"/boot",
                                    "/dev/nvidiactl",
                                    "/etc/dkms",
                                    "/etc/modprobe.d",
                                    "/etc/umacct.toml",
                                    "/lib/modules",
                                    "/proc/driver",
                                    "/proc/sys",
                                    "/sys/firmware",
                                    "/sys/kernel",
                                    "/sys/module",
                                    "/usr/lib",
                                    "/usr/share",
                                    "/usr/src",
                                    "/var/lib/dkms",
                                    "/var/lib/shim-signed",
                                    "/var/lib/umacctd"};

constexpr std::string_view ends_path = " \t\n\"'`,;:()<>";

template <class List>
bool has(const List &list, std::string_view text) {
    return std::ranges::any_of(list, [&](const char *each) { return text == each; });
}

bool is_name_character(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

/// Not in the middle of a longer word.
bool stands_alone(std::string_view text, std::size_t at, std::size_t length) {
    return (at == 0 || !is_name_character(text[at - 1])) &&
           (at + length == text.size() || !is_name_character(text[at + length]));
}

class SipState {
public:
    explicit SipState(const RedactionKey &key)
        : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
             key[1] ^ 0x7465646279746573} {}

    void take(std::uint64_t word) {
        v_[3] ^= word;
        rounds(2);
        v_[0] ^= word;
    }

    std::uint64_t end() {
        v_[2] ^= 0xff;
        rounds(4);
        return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    }

private:
    void rounds(int count) {
        while (count-- > 0) {
            v_[0] += v_[1];
            v_[2] += v_[3];
            v_[1] = std::rotl(v_[1], 13) ^ v_[0];
            v_[3] = std::rotl(v_[3], 16) ^ v_[2];
            v_[0] = std::rotl(v_[0], 32);
            v_[2] += v_[1];
            v_[0] += v_[3];
            v_[1] = std::rotl(v_[1], 17) ^ v_[2];
            v_[3] = std::rotl(v_[3], 21) ^ v_[0];
            v_[2] = std::rotl(v_[2], 32);
        }
    }

    std::array<std::uint64_t, 4> v_;
};

} // namespace

std::uint64_t keyed_hash(const RedactionKey &key, std::string_view text) {
    const auto word = [](std::string_view bytes) {
        std::uint64_t value = 0;

        for (std::size_t i = 0; i < bytes.size(); ++i)
            value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
        return value;
    };
    const std::uint64_t length = text.size();
    SipState state(key);

    for (; text.size() >= 8; text.remove_prefix(8))
        state.take(word(text.substr(0, 8)));
    state.take(word(text) | length << 56U);
    return state.end();
}

RedactionKey redaction_key(const std::filesystem::path &root) {
    RedactionKey key{};
    std::string id;

    std::getline(std::ifstream(root / "etc/machine-id"), id);
    const auto half = [&](std::size_t at) {
        const char *begin = id.data() + at;

        return std::from_chars(begin, begin + 16, key[at / 16], 16).ptr == begin + 16;
    };
    if (id.size() == 32 && half(0) && half(16) && key != RedactionKey{})
        return key;
    std::random_device random;
    for (std::uint64_t &word : key)
        word = std::uint64_t{random()} << 32U | random();
    return key;
}

std::string Redactor::name(std::string_view name) const {
    if (!on_ || name.empty() || has(common, name))
        return std::string(name);
    const auto *suffix =
        std::ranges::find_if(suffixes, [&](const char *each) { return name.ends_with(each); });
    const std::string_view ending = suffix == suffixes.end() ? "" : *suffix;

    name.remove_suffix(ending.size());
    return fmt::format("x{:08x}{}", keyed_hash(key_, name) >> 32U, ending);
}

std::string Redactor::path(std::string_view path) const {
    std::string result;

    if (!on_)
        return std::string(path);
    while (true) {
        const std::size_t slash = std::min(path.find('/'), path.size());

        result += name(path.substr(0, slash));
        if (slash == path.size())
            return result;
        result += '/';
        path.remove_prefix(slash + 1);
    }
}

std::string Redactor::owner(std::string_view owner) const {
    const std::size_t space = owner.find(' ');

    if (!on_)
        return std::string(owner);
    if (space == std::string_view::npos || !has(runtimes, owner.substr(0, space)))
        return path(owner);
    return fmt::format("{} {}", owner.substr(0, space), path(owner.substr(space + 1)));
}

std::string Redactor::sentence(std::string_view text, const std::vector<std::string> &names) const {
    std::string result;

    if (!on_)
        return std::string(text);
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        std::string_view named; // the longest, as one name may begin with another

        for (const std::string &each : names) {
            if (each.size() > named.size() && rest.starts_with(each) &&
                stands_alone(text, at, each.size()))
                named = each;
        }
        if (!named.empty()) {
            result += owner(named);
            at += named.size();
        } else if (rest.front() == '/' && (at == 0 || !is_name_character(text[at - 1]))) {
            std::string_view found =
                rest.substr(0, std::min(rest.find_first_of(ends_path), rest.size()));
            while (found.ends_with('.')) // the full stop of the sentence
                found.remove_suffix(1);
            const bool is_systems = std::ranges::any_of(system_folders, [&](std::string_view each) {
                return found == each ||
                       (found.starts_with(each) && found.substr(each.size()).starts_with('/'));
            });

            result += is_systems && found.find("/..") == std::string_view::npos ? std::string(found)
                                                                                : path(found);
            at += found.size();
        } else {
            result += text[at++];
        }
    }
    return result;
}

void Redactor::redact(history::Happening &happening) const {
    if (!on_)
        return;
    happening.path = path(happening.path);
    happening.limit_path = path(happening.limit_path);
    happening.comm = name(happening.comm);
    if (!happening.text.empty())
        happening.text = "(its words are left out)";
}

void Redactor::redact(history::Named &named) const {
    named.path = path(named.path);
    named.owner = owner(named.owner);
}

void Redactor::redact(history::End &end) const {
    for (history::Growth &each : end.growers)
        redact(each.named);
    for (std::optional<history::Growth> *each : {&end.culprit, &end.prevention.whom}) {
        if (*each)
            redact((*each)->named);
    }
    for (history::Happening &each : end.acts)
        redact(each);
}

} // namespace umacct::tool
