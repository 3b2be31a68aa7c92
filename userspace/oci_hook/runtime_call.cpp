// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/runtime_call.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct::oci_hook {

namespace {

/// Options of runc and crun before the command, with their value in the next word.
constexpr std::array options_with_value{
    std::string_view("--root"),           std::string_view("--log"),
    std::string_view("--log-format"),     std::string_view("--log-level"),
    std::string_view("--cgroup-manager"), std::string_view("--criu"),
    std::string_view("--rootless")};

/// The commands that make a container of a bundle.
constexpr std::array makers{std::string_view("create"), std::string_view("run"),
                            std::string_view("restore")};

/// The value of an option that is this word, "--log=FILE", or that the next one has.
std::optional<std::string> value_of(std::string_view option, const std::vector<std::string> &words,
                                    std::size_t at) {
    const std::string &word = words[at];

    if (word == option)
        return at + 1 < words.size() ? words[at + 1] : "";
    if (word.starts_with(option) && word[option.size()] == '=')
        return word.substr(option.size() + 1);
    return std::nullopt;
}

/// Splits umacct-runtime's own options from the runtime's arguments.
RuntimeCall split_words(const std::vector<std::string> &words) {
    constexpr std::string_view runtime = "--umacct-runtime=";
    constexpr std::string_view prefix = "--umacct-";
    RuntimeCall call;

    for (const std::string &word : words) {
        if (word.starts_with(runtime))
            call.runtime = word.substr(runtime.size());
        else if (word == "--umacct-instead-of-nvidia")
            call.instead_of_nvidia = true;
        else if (word.starts_with(prefix))
            throw Error(Failure::usage, fmt::format("there is no option {}", word));
        else
            call.arguments.push_back(word);
    }
    if (call.runtime.empty())
        throw Error(Failure::usage, fmt::format("{} names no runtime", runtime));
    return call;
}

/// The options before the runtime's command. Returns the command's place, or the end.
std::size_t read_log(RuntimeCall &call) {
    std::size_t i = 0;

    for (; i < call.arguments.size() && call.arguments[i].starts_with('-'); ++i) {
        if (auto log = value_of("--log", call.arguments, i))
            call.log = std::move(*log);
        if (std::ranges::find(options_with_value, call.arguments[i]) != options_with_value.end())
            ++i;
    }
    return i;
}

} // namespace

RuntimeCall read_call(const std::vector<std::string> &words) {
    RuntimeCall call = split_words(words);
    const std::size_t command = read_log(call);

    if (command >= call.arguments.size() ||
        std::ranges::find(makers, call.arguments[command]) == makers.end())
        return call;
    call.bundle = std::filesystem::current_path();
    for (std::size_t i = command + 1; i < call.arguments.size(); ++i) {
        for (const char *option : {"--bundle", "-b"}) {
            if (auto bundle = value_of(option, call.arguments, i))
                call.bundle = std::filesystem::absolute(*bundle);
        }
    }
    return call;
}

} // namespace umacct::oci_hook
