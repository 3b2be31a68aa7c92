// SPDX-License-Identifier: GPL-2.0-or-later
/// Pseudonyms for names and paths, for a report that others read.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/history/analysis.h"

namespace umacct::tool {

using RedactionKey = std::array<std::uint64_t, 2>;

/// SipHash-2-4: without the key, names can't be guessed by trying.
std::uint64_t keyed_hash(const RedactionKey &key, std::string_view text);

/// The machine's id, which no report has; where there is none, a key of now, so that the next
/// report has other pseudonyms.
RedactionKey redaction_key(const std::filesystem::path &root);

/// The same name has the same pseudonym in every report of a machine: "x0123abcd". Kept are
/// names that systemd and Kubernetes give on every machine, what a unit ends in, and which
/// runtime a container is of.
class Redactor {
public:
    /// One that keeps everything.
    Redactor() = default;

    explicit Redactor(const RedactionKey &key) : key_(key), on_(true) {}

    bool is_on() const { return on_; }

    std::string name(std::string_view name) const;
    std::string path(std::string_view path) const;
    /// "docker vllm", "pod default/llm-0", "nginx.service"
    std::string owner(std::string_view owner) const;
    /// A sentence of this program's: names that are in it, and paths but the system's.
    std::string sentence(std::string_view text, const std::vector<std::string> &names = {}) const;

    /// Drops the text of a logged line, which may contain any name.
    void redact(history::Happening &happening) const;
    void redact(history::Named &named) const;
    void redact(history::End &end) const;

private:
    RedactionKey key_{};
    bool on_ = false;
};

} // namespace umacct::tool
