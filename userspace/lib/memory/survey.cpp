// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/survey.h"

#include <algorithm>

#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

namespace {

constexpr std::size_t pages_at_once = 64U << 10;

constexpr std::uint64_t bit(unsigned number) {
    return std::uint64_t{1} << number;
}

bool has(std::uint64_t flags, unsigned number) {
    return (flags & bit(number)) != 0;
}

bool is_free(std::uint64_t flags) {
    return has(flags, KPF_BUDDY);
}

/// Clean, and no memory's but a file's.
bool is_clean_cache(std::uint64_t flags) {
    constexpr std::uint64_t against = bit(KPF_ANON) | bit(KPF_SWAPBACKED) | bit(KPF_DIRTY) |
                                      bit(KPF_WRITEBACK) | bit(KPF_UNEVICTABLE) | bit(KPF_LOCKED);

    return has(flags, KPF_LRU) && (flags & against) == 0;
}

/// Locked pages can move if they are a program's; a file system in memory, whose
/// pages are unevictable too, has no way to. Of a huge page, older kernels say of the first
/// part alone that it is on a list.
bool is_movable(std::uint64_t flags) {
    return (has(flags, KPF_LRU) || has(flags, KPF_THP)) &&
           (has(flags, KPF_ANON) || has(flags, KPF_SWAPBACKED) || !has(flags, KPF_UNEVICTABLE));
}

/// A number for each page of the machine, by page number.
class PageFile {
public:
    explicit PageFile(const std::filesystem::path &path)
        : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

    bool is_open() const { return file_.get() >= 0; }

    /// How many there were, from that page on; 0 where it can't be read.
    std::uint64_t read(std::uint64_t first, std::span<std::uint64_t> pages) const {
        const ssize_t size = pread(file_.get(), pages.data(), pages.size_bytes(),
                                   static_cast<off_t>(first * sizeof(first)));

        return size < 0 ? 0 : static_cast<std::uint64_t>(size) / sizeof(first);
    }

private:
    FileDescriptor file_;
};

} // namespace

void Survey::keep(std::uint64_t &flags) {
    if (!is_clean_cache(flags))
        return;
    // It is page cache that may be given back or not, and it can be moved.
    ++clean_pages;
    flags |= bit(KPF_DIRTY);
}

void Survey::add(std::span<const std::uint64_t> block) {
    std::size_t free = 0;
    std::size_t clean = 0;
    std::size_t others = 0;

    for (const std::uint64_t flags : block) {
        if (is_free(flags))
            ++free;
        else if (is_clean_cache(flags))
            ++clean;
        else if (is_movable(flags))
            ++others;
    }
    clean_pages += clean;
    if (free == block.size())
        return;
    if (free + clean == block.size()) {
        ++reclaimable;
    } else if (free + clean + others == block.size()) {
        ++movable;
    } else {
        const std::size_t left = block.size() - free - clean - others;

        unknown.resize(std::max(unknown.size(), left + 1));
        ++unknown[left];
    }
}

namespace {

/// Keeps what belongs to one of the keepers. False if that can't be read.
bool keep_pages(Survey &survey, const PageFile &owners, std::uint64_t at,
                std::span<std::uint64_t> flags, std::vector<std::uint64_t> &cgroups,
                const std::unordered_set<std::uint64_t> &keepers) {
    if (keepers.empty())
        return true;
    if (owners.read(at, std::span(cgroups).first(flags.size())) < flags.size())
        return false;
    for (std::size_t in = 0; in < flags.size(); ++in) {
        if (keepers.contains(cgroups[in]))
            survey.keep(flags[in]);
    }
    return true;
}

} // namespace

std::uint64_t Survey::obtainable(std::uint64_t unknown_free) const {
    std::uint64_t blocks = reclaimable + movable;

    for (std::size_t pages = 1; pages < unknown.size(); ++pages) {
        const std::uint64_t more = std::min(unknown[pages], unknown_free / pages);

        blocks += more;
        unknown_free -= more * pages;
    }
    return blocks;
}

std::optional<Survey> survey_blocks(const std::filesystem::path &proc, const Zones &zones,
                                    std::size_t order,
                                    const std::unordered_set<std::uint64_t> &keepers) {
    const PageFile file(proc / "kpageflags");
    const PageFile owners(proc / "kpagecgroup");
    const std::uint64_t pages = std::uint64_t{1} << order;
    std::vector<std::uint64_t> flags(std::max<std::uint64_t>(pages_at_once, pages));
    std::vector<std::uint64_t> cgroups(keepers.empty() ? 0 : flags.size());
    Survey survey;

    if (!file.is_open())
        return std::nullopt;
    for (const Zone &zone : zones.list()) {
        const std::uint64_t end = zone.first + zone.spanned;

        // Blocks begin at multiples of their size in memory.
        for (std::uint64_t at = (zone.first + pages - 1) >> order << order; at + pages <= end;) {
            const std::uint64_t wanted =
                std::min<std::uint64_t>(flags.size(), end - at) >> order << order;
            const std::uint64_t got = file.read(at, std::span(flags).first(wanted)) >> order
                                                                                           << order;

            if (got == 0)
                return std::nullopt;
            if (!keep_pages(survey, owners, at, std::span(flags).first(got), cgroups, keepers))
                return std::nullopt;
            for (std::uint64_t in = 0; in < got; in += pages)
                survey.add(std::span(flags).subspan(in, pages));
            at += got;
        }
    }
    return survey;
}

} // namespace umacct
