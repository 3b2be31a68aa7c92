// SPDX-License-Identifier: GPL-2.0-or-later
/// The recorder's file after a power cut: on a disk that had written all synced data,
/// and of the rest what it liked.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "lib/history/layout.h"
#include "lib/history/reader.h"
#include "tests/history_story.h"

namespace umacct::history {
namespace {

using test::Story;

constexpr std::int64_t three = 1'795'575'600'000;
constexpr std::int64_t minute = 60'000;
constexpr std::size_t sector = 512;

/// Records SQLite's operations on its files, in their order, up to a number.
class Disk {
public:
    Disk() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
        vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
        vfs_.zName = "umacct-cuts";
        vfs_.pAppData = this;
        vfs_.xOpen = open;
        vfs_.xDelete = erase;
        if (sqlite3_vfs_register(&vfs_, 1) != SQLITE_OK)
            throw std::runtime_error("SQLite takes no other disk");
    }

    ~Disk() { sqlite3_vfs_unregister(&vfs_); }

    Disk(const Disk &) = delete;
    Disk &operator=(const Disk &) = delete;

    void enough() { enough_ = true; }

    /// The writer said that all until then is written.
    void acknowledge(std::int64_t time_ms) { add({.act = Act::acknowledge, .offset = time_ms}); }

    /// The moments at which it can be cut: before operation 0, 1, ...
    std::size_t moments() const { return operations_.size(); }

    /// Those at which the file itself, and not its log, is being written.
    std::vector<std::size_t> moments_of(const std::string &file) const {
        std::vector<std::size_t> found;

        for (std::size_t i = 0; i < operations_.size(); ++i) {
            if (operations_[i].file == file)
                found.push_back(i);
        }
        return found;
    }

    /// Puts into the folder what there is after a cut at that moment. Returns until when the writer
    /// had said that all is written; 0 for nothing.
    std::int64_t cut(std::size_t moment, std::mt19937_64 &random,
                     const std::filesystem::path &folder) const {
        std::map<std::string, std::string> files;
        std::vector<const Operation *> pending;
        std::int64_t acknowledged = 0;

        for (std::size_t i = 0; i < moment; ++i) {
            const Operation &operation = operations_[i];

            if (operation.act == Act::acknowledge) {
                acknowledged = operation.offset;
            } else if (operation.act == Act::sync) {
                // A file system writes its metadata in order, with any file.
                std::erase_if(pending, [&](const Operation *each) {
                    if (each->file != operation.file && each->act != Act::erase)
                        return false;
                    apply(files, *each, nullptr);
                    return true;
                });
            } else {
                pending.push_back(&operation);
            }
        }
        for (const Operation *each : pending) {
            if (random() % 3 != 0)
                apply(files, *each, random() % 2 == 0 ? nullptr : &random);
        }
        std::filesystem::create_directories(folder);
        for (const auto &[name, content] : files)
            std::ofstream(folder / name, std::ios::binary) << content;
        return acknowledged;
    }

private:
    enum class Act { write, truncate, erase, sync, acknowledge };

    struct Operation {
        Act act;
        std::string file{};
        std::int64_t offset = 0;
        std::string data{};
    };

    /// SQLite's handle of a file, in front of the real one.
    struct File {
        sqlite3_file base;
        Disk *disk;
        const char *name; ///< good until it is closed

        sqlite3_file *real() { return reinterpret_cast<sqlite3_file *>(this + 1); }

        std::string file() const { return std::filesystem::path(name).filename(); }
    };

    void add(Operation operation) {
        if (!enough_)
            operations_.push_back(std::move(operation));
    }

    /// torn: which sectors of it are on the disk; all where there is none.
    static void apply(std::map<std::string, std::string> &files, const Operation &operation,
                      std::mt19937_64 *torn) {
        if (operation.act == Act::erase) {
            files.erase(operation.file);
            return;
        }
        std::string &content = files[operation.file];
        const auto offset = static_cast<std::size_t>(operation.offset);

        if (operation.act == Act::truncate) {
            content.resize(std::min(content.size(), offset));
            return;
        }
        if (content.size() < offset + operation.data.size())
            content.resize(offset + operation.data.size());
        for (std::size_t at = 0; at < operation.data.size(); at += sector) {
            if (torn == nullptr || (*torn)() % 2 == 0)
                content.replace(offset + at, std::min(sector, operation.data.size() - at),
                                operation.data, at, sector);
        }
    }

    static File &of(sqlite3_file *file) { return *reinterpret_cast<File *>(file); }

    static int open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *got_flags) {
        auto &disk = *static_cast<Disk *>(vfs->pAppData);
        File &its = of(file);
        const int code = disk.real_->xOpen(disk.real_, name, its.real(), flags, got_flags);

        its.base.pMethods = code == SQLITE_OK ? &methods : nullptr;
        its.disk = &disk;
        its.name = name;
        return code;
    }

    static int erase(sqlite3_vfs *vfs, const char *name, int sync_folder) {
        auto &disk = *static_cast<Disk *>(vfs->pAppData);
        const std::string file = std::filesystem::path(name).filename();

        disk.add({.act = Act::erase, .file = file});
        if (sync_folder != 0)
            disk.add({.act = Act::sync, .file = file});
        return disk.real_->xDelete(disk.real_, name, 0);
    }

    static int write(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset) {
        File &its = of(file);

        its.disk->add({.act = Act::write,
                       .file = its.file(),
                       .offset = offset,
                       .data = {static_cast<const char *>(data), static_cast<std::size_t>(bytes)}});
        return its.real()->pMethods->xWrite(its.real(), data, bytes, offset);
    }

    static int truncate(sqlite3_file *file, sqlite3_int64 size) {
        File &its = of(file);

        its.disk->add({.act = Act::truncate, .file = its.file(), .offset = size});
        return its.real()->pMethods->xTruncate(its.real(), size);
    }

    /// The real disk needn't: its power stays.
    static int sync(sqlite3_file *file, int /*flags*/) {
        of(file).disk->add({.act = Act::sync, .file = of(file).file()});
        return SQLITE_OK;
    }

    /// The real file's method, as it is.
    template <auto Method, class... Arguments>
    static auto pass(sqlite3_file *file, Arguments... arguments) {
        sqlite3_file *real = of(file).real();

        return (real->pMethods->*Method)(real, arguments...);
    }

    using Methods = sqlite3_io_methods;

    static const Methods methods;

    sqlite3_vfs *real_;
    sqlite3_vfs vfs_;
    std::vector<Operation> operations_;
    bool enough_ = false;
};

const sqlite3_io_methods Disk::methods{
    .iVersion = 2, // no mapped memory: writes to it cannot be seen
    .xClose = pass<&Methods::xClose>,
    .xRead = pass<&Methods::xRead, void *, int, sqlite3_int64>,
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = pass<&Methods::xFileSize, sqlite3_int64 *>,
    .xLock = pass<&Methods::xLock, int>,
    .xUnlock = pass<&Methods::xUnlock, int>,
    .xCheckReservedLock = pass<&Methods::xCheckReservedLock, int *>,
    .xFileControl = pass<&Methods::xFileControl, int, void *>,
    .xSectorSize = pass<&Methods::xSectorSize>,
    .xDeviceCharacteristics = pass<&Methods::xDeviceCharacteristics>,
    .xShmMap = pass<&Methods::xShmMap, int, int, int, void volatile **>,
    .xShmLock = pass<&Methods::xShmLock, int, int, int>,
    .xShmBarrier = pass<&Methods::xShmBarrier>,
    .xShmUnmap = pass<&Methods::xShmUnmap, int>,
};

constexpr std::uint64_t accounts = 40;

/// Bytes that the account of that number holds then: never the same twice.
std::uint64_t held_at(std::int64_t time_ms, std::uint64_t number) {
    return (static_cast<std::uint64_t>(time_ms / 1000) + number) * 0x9e37'79b9'7f4aU %
           (1ULL << 40U);
}

/// A clean start and one that is cut, second by second; old seconds are forgotten meanwhile.
void record(Disk &disk) {
    const test::Sandbox sandbox;
    const Bounds bounds{.rows = {150, 150, 60, 60}};

    const auto live = [&](const std::string &boot_id, std::int64_t started_ms, int seconds,
                          bool ends) {
        Story story(sandbox, boot_id, started_ms, bounds);

        for (int i = 0; i < seconds; ++i) {
            for (std::uint64_t number = 1; number <= accounts; ++number)
                story.account("/" + std::to_string(number))[Holding::driver] =
                    held_at(story.sample.time_ms + 1000, number);
            if (i % 7 == 0)
                story.happenings.push_back({.time_ms = story.sample.time_ms, .type = "hard"});
            story.pass(1);
            disk.acknowledge(story.sample.time_ms);
        }
        if (ends)
            story.writer().end();
    };
    live("one", three, 150, true);
    live("two", three + 1'000'000, 700, false);
}

TEST(HistoryCuts, AHundredLoseNothingThatWasWritten) {
    constexpr int cuts = 100;
    std::mt19937_64 random(1); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    Disk disk;

    setenv("TZ", "UTC", 1);
    tzset();
    record(disk);
    disk.enough();
    const auto of_file = disk.moments_of(file_name);
    ASSERT_GT(of_file.size(), 100U) << "the log was put into the file several times";
    for (int i = 0; i < cuts; ++i) {
        const test::Sandbox after;
        const std::size_t moment =
            i % 2 == 0 ? random() % (disk.moments() + 1) : of_file[random() % of_file.size()];
        SCOPED_TRACE("cut " + std::to_string(i) + " before operation " + std::to_string(moment));
        const std::int64_t acknowledged = disk.cut(moment, random, after.root() / folder);
        Story next(after, "three", three + 2'000'000);

        next.pass(1);
        EXPECT_TRUE(next.told.empty()) << next.told.front();
        Reader reader(after.root());
        const auto boots = reader.boots();
        std::int64_t last_ms = 0;
        for (auto boot = boots.begin(); boot != std::prev(boots.end()); ++boot) {
            const std::int64_t finest_from = boot->boot_id == std::prev(boots.end(), 2)->boot_id
                                                 ? boot->last_ms - minute
                                                 : INT64_MAX;
            const auto names = reader.accounts(*boot);
            reader.for_each(*boot, {}, [&](const Moment &kept) {
                EXPECT_EQ(kept.state.accounts.size(), accounts);
                for (const auto &[key, holdings] : kept.state.accounts)
                    EXPECT_EQ(holdings[Holding::driver],
                              held_at(kept.time_ms, std::stoull(names.at(key).path.substr(1))));
                if (kept.time_ms > std::max(finest_from, boot->first_ms)) {
                    EXPECT_EQ(kept.time_ms - last_ms, 1000) << "no second is missing";
                }
                last_ms = kept.time_ms;
            });
        }
        EXPECT_GE(last_ms, acknowledged);
    }
}

} // namespace
} // namespace umacct::history
