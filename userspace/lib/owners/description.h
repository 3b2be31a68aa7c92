// SPDX-License-Identifier: GPL-2.0-or-later
/// What a runtime wrote down about a container for people: what it is called, what it was made
/// from and what was stuck on it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace umacct {

struct Description {
    std::string name;
    std::string image;               ///< as the runtime has it, mostly with a tag or a digest
    std::vector<std::string> labels; ///< "KEY=VALUE"

    /// One that is too long is left out: cut off, it would be another one.
    void add_label(std::string_view key, std::string_view value);

    /// For the answer of a child that read a runtime's file: the name, the image, the labels, of
    /// harmless characters. No lines for nothing.
    std::string lines() const;

    /// The same, read.
    static Description of(std::span<const std::string> lines);
};

/// An image's name as one word of harmless characters; empty for one that is too long.
std::string clean_image(std::string_view image);

} // namespace umacct
