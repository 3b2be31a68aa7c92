// SPDX-License-Identifier: GPL-2.0-or-later
/// The audit: its sums, its verdicts, and what the verb prints of them.
#include "tool/audit/statement.h"

#include <fstream>
#include <numeric>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "tests/tool_fixture.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::Ran;

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::uint64_t slack = 4 * mib;

constexpr const char *meminfo_text = "MemTotal:       16777216 kB\n"
                                     "MemFree:         1048576 kB\n"
                                     "MemAvailable:    2097152 kB\n"
                                     "Buffers:            1024 kB\n"
                                     "Cached:          4193280 kB\n"
                                     "AnonPages:       2097152 kB\n"
                                     "Shmem:           1048576 kB\n"
                                     "KReclaimable:     524288 kB\n"
                                     "Slab:             786432 kB\n"
                                     "SReclaimable:     262144 kB\n"
                                     "KernelStack:       16384 kB\n"
                                     "PageTables:        32768 kB\n"
                                     "SecPageTables:      1024 kB\n"
                                     "VmallocUsed:       65536 kB\n"
                                     "Percpu:             8192 kB\n";

Statement machine(const Status &status, const BesideMeminfo &beside = {},
                  const Watermarks &watermarks = {}, const std::string &more = "") {
    std::istringstream text(meminfo_text + more);

    return machine_statement(Meminfo(text), watermarks, beside, status);
}

std::int64_t sum(const Statement &statement) {
    return std::accumulate(statement.parts.begin(), statement.parts.end(), std::int64_t{0});
}

TEST(Statement, AddsUpAndCountsNothingTwice) {
    Status status;

    status.usage = 3 * gib;
    status.charged = gib;
    status.driver_usage = 64 * mib;
    status.managed = 128 * mib;

    const Statement statement = machine(status, {.free_lists = mib});
    EXPECT_EQ(sum(statement), 16 * static_cast<std::int64_t>(gib));
    EXPECT_EQ(statement[Part::page_cache] + statement[Part::shared_memory],
              4 * static_cast<std::int64_t>(gib));
    EXPECT_EQ(statement[Part::kernel_stack] + statement[Part::vmalloc], 65536 * 1024);
    EXPECT_EQ(statement[Part::page_tables], 33792 * 1024);
    EXPECT_EQ(statement[Part::kernel_other], 262144 * 1024);
    EXPECT_EQ(statement[Part::driver_charged], 1 * static_cast<std::int64_t>(gib));
    EXPECT_EQ(statement[Part::driver_uncharged], 2 * static_cast<std::int64_t>(gib));
    EXPECT_EQ(statement[Part::free_lists], 1 * static_cast<std::int64_t>(mib));
}

TEST(Statement, TheDriversMemoryComesOutOfTheUnexplained) {
    Status status;
    const std::int64_t before = machine(status)[Part::unexplained];

    status.usage = gib;
    EXPECT_EQ(machine(status)[Part::unexplained], before - static_cast<std::int64_t>(gib));
}

TEST(Statement, MoreThanThereIsIsANegativeRest) {
    Status status;

    status.usage = 32 * gib;
    EXPECT_LT(machine(status)[Part::unexplained], 0);
    EXPECT_EQ(sum(machine(status)), 16 * static_cast<std::int64_t>(gib));
}

TEST(Statement, WhatHasNoLineInMeminfoIsExplained) {
    const std::int64_t before = machine({}, {}, {}, "Zswap: 1024 kB\n")[Part::unexplained];
    const Statement statement =
        machine({}, {.zspages = 64 * mib, .cma = 16 * mib}, {}, "Zswap: 1024 kB\n");

    EXPECT_EQ(statement[Part::zram], 63 * static_cast<std::int64_t>(mib)); // zswap has the rest
    EXPECT_EQ(statement[Part::cma], 16 * static_cast<std::int64_t>(mib));
    EXPECT_EQ(statement[Part::unexplained], before - 79 * static_cast<std::int64_t>(mib));
    EXPECT_EQ(sum(statement), 16 * static_cast<std::int64_t>(gib));
}

TEST(Statement, MemAvailableIsTakenApart) {
    const Watermarks watermarks{.low = 32 * mib, .reserve = 64 * mib};
    const Statement statement =
        machine({}, {}, watermarks, "Active(file): 1048576 kB\nInactive(file): 40960 kB\n");
    const AvailableStatement &it = statement.available;

    EXPECT_EQ(it.file, gib + 40 * mib);
    EXPECT_EQ(it.file_kept, 32 * mib);
    EXPECT_EQ(it.slab, 256 * mib);
    EXPECT_EQ(it.slab_kept, 32 * mib);
    EXPECT_EQ(it.other, 256 * mib); // KReclaimable has more than slab
    EXPECT_EQ(it.locked_file, 4095 * mib + mib - gib - it.file);
    // 2 GiB are said to be available.
    EXPECT_EQ(it.rest, static_cast<std::int64_t>(2 * gib) -
                           static_cast<std::int64_t>(gib - 64 * mib + it.file - 32 * mib +
                                                     512 * mib - 32 * mib));
    std::int64_t taken = 0;
    for (const PartForm &form : part_forms())
        taken += statement.taken(form.part);
    EXPECT_EQ(taken, static_cast<std::int64_t>(14 * gib) + it.rest);
}

TEST(Statement, OfLittlePageCacheHalfStays) {
    const Statement statement =
        machine({}, {}, {.low = 32 * mib}, "Active(file): 1024 kB\nInactive(file): 1024 kB\n");

    EXPECT_EQ(statement.available.file_kept, mib);
}

TEST(Statement, ReadsZoneinfoAndVmstat) {
    std::istringstream zoneinfo(
        "Node 0, zone DMA\n  per-node stats\n      nr_inactive_anon 18\n  pages free 3840\n"
        "        boost 100\n        min 130\n        low 140\n        high 150\n"
        "        spanned 4095\n"
        "        managed 3840\n        protection: (0, 1790, 1790)\n"
        "  pagesets\n    cpu: 0\n              count: 12\n              high: 7\n"
        "    cpu: 1\n              count: 30\n              high: 7\n"
        "Node 0, zone Normal\n        low 400\n        high 500\n        managed 300\n"
        "        protection: (0, 0, 0)\n");
    std::istringstream vmstat("nr_foll_pin_acquired 50\nnr_foll_pin_released 20\nnr_zspages 7\n");
    std::istringstream nothing;
    const Watermarks watermarks = Watermarks::read(zoneinfo, 4096);

    EXPECT_EQ(watermarks.free_lists, 42U * 4096);
    EXPECT_EQ(watermarks.low, 540U * 4096);
    EXPECT_EQ(watermarks.reserve, (1840U + 300) * 4096); // no more than a zone has
    const VmCounters counters = VmCounters::read(vmstat);
    EXPECT_EQ(counters.pinned, 30U);
    EXPECT_EQ(counters.zspages, 7U);
    EXPECT_EQ(VmCounters::read(nothing).pinned, 0U);
}

TEST(Statement, WhatDevicesHaveOfCmaIsSaidWhereTheKernelTells) {
    const test::Sandbox sandbox;
    const auto areas = sandbox.root() / "cma";

    EXPECT_FALSE(pages_of_devices(areas));
    sandbox.write("cma/reserved/alloc_pages_success", "100\n");
    EXPECT_FALSE(pages_of_devices(areas)); // an older kernel
    sandbox.write("cma/reserved/release_pages_success", "40\n");
    sandbox.write("cma/other/alloc_pages_success", "5\n");
    sandbox.write("cma/other/release_pages_success", "5\n");
    EXPECT_EQ(pages_of_devices(areas), 60U);
}

TEST(Statement, ReadsTheDriversBookkeeping) {
    std::istringstream slabinfo(
        "slabinfo - version: 2.1\n"
        "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : ...\n"
        "nvidia_pte_cache  131072 131072     32  128    1 : tunables    0    0    0 : slabdata   "
        "1024   1024      0\n"
        "uvm_va_range_t         1     16   1024   16    4 : tunables    0    0    0 : slabdata   "
        "   1      1      0\n"
        "kmalloc-32          1000   1024     32  128    1 : tunables    0    0    0 : slabdata   "
        "   8      8      0\n"
        "nvidia_cut_short  131072\n");
    std::istringstream vmallocinfo(
        "0xffffbe3ec0000000-0xffffbe3ec0005000   20480 os_alloc_mem+0x8d/0xd0 [nvidia] pages=4 "
        "vmalloc N0=4\n"
        "0xffffbe3ec0005000-0xffffbe3ec0007000    8192 __uvm_kvmalloc+0x6d/0x90 [nvidia_uvm] "
        "pages=1 vmalloc N0=1\n"
        "0xffffbe3ec0008000-0xffffbe3ec0009000    4096 nv_map+0x6d/0x90 [nvidia] phys=0xfee00000 "
        "ioremap\n"
        "0xffffbe3ec0007000-0xffffbe3ec0010000   36864 bpf_prog_alloc+0x5/0x9 pages=8 vmalloc\n");
    std::istringstream nothing;

    const SlabBookkeeping in_slab = bookkeeping_in_slab(slabinfo, "/nowhere");
    EXPECT_EQ(in_slab.pages, 1028U);
    EXPECT_FALSE(in_slab.partial);
    EXPECT_EQ(bookkeeping_in_vmalloc(vmallocinfo), 5U);
    EXPECT_FALSE(bookkeeping_in_slab(nothing, "/nowhere").pages);
    EXPECT_FALSE(bookkeeping_in_vmalloc(nothing));
}

struct Judged {
    const char *what;
    std::uint64_t usage, charged, managed;
    std::uint64_t kernel_pages; ///< figure of memory.stat
    std::uint64_t once, twice, unseen;
    Verdict verdict;
};

[[maybe_unused]] std::ostream &operator<<(std::ostream &out, const Judged &judged) {
    return out << judged.what;
}

class Judgement : public testing::TestWithParam<Judged> {};

TEST_P(Judgement, SplitsTheUsageByTheKernelsOwnCount) {
    const Judged &wanted = GetParam();
    Account account;

    account.usage = wanted.usage;
    account.charged = wanted.charged;
    account.managed = wanted.managed;

    const CgroupStatement statement = cgroup_statement(account, 10 * mib + wanted.kernel_pages,
                                                       {{"anon", 4 * mib},
                                                        {"file", mib},
                                                        {"slab", 2 * mib},
                                                        {"kernel", 2 * mib + wanted.kernel_pages}},
                                                       slack);
    EXPECT_EQ(statement.once, wanted.once);
    EXPECT_EQ(statement.twice, wanted.twice);
    EXPECT_EQ(statement.unseen, wanted.unseen);
    EXPECT_EQ(statement.once + statement.twice + statement.unseen, wanted.usage);
    EXPECT_EQ(statement.verdict, wanted.verdict);
    EXPECT_EQ(statement.other, 3 * static_cast<std::int64_t>(mib));
    EXPECT_EQ(statement.kernel_pages, wanted.kernel_pages);
}

INSTANTIATE_TEST_SUITE_P(
    Audit, Judgement,
    testing::Values(
        Judged{"nothing held", 0, 0, 0, mib, 0, 0, 0, Verdict::none},
        Judged{"blind", gib, 0, 0, mib, 0, 0, gib, Verdict::blind},
        Judged{"little, and blind", mib, 0, 0, mib, 0, 0, mib, Verdict::blind},
        Judged{"charged", gib, gib, 0, gib + mib, gib, 0, 0, Verdict::charged},
        Judged{"charged, managed memory among it", 3 * gib, 3 * gib, 2 * gib, 3 * gib, 3 * gib, 0,
               0, Verdict::charged},
        Judged{"half charged", gib, gib / 2, 0, gib / 2, gib / 2, 0, gib / 2, Verdict::blind},
        Judged{"charged unknown to the module", gib, 0, 0, gib, gib, 0, 0, Verdict::charged},
        Judged{"the module's word alone", gib, gib, 0, 0, 0, 0, gib, Verdict::blind},
        Judged{"doubled", gib, gib, 0, 2 * gib, 0, gib, 0, Verdict::doubled},
        Judged{"managed memory alone", gib, gib, gib, gib, gib, 0, 0, Verdict::charged}));

TEST(Judgement, WithoutMemoryStatTheModulesWordIsTaken) {
    Account account;

    account.usage = account.charged = gib;
    EXPECT_EQ(cgroup_statement(account, {}, {}, slack).verdict, Verdict::charged);
}

// --- the verb -------------------------------------------------------------------

class AuditVerb : public test::ToolFixture {
protected:
    AuditVerb() {
        Account root;
        root.id = 1;
        root.path = "/";
        Account blind;
        blind.id = sandbox_.add_cgroup("/blind");
        blind.parent_id = 1;
        blind.level = 1;
        blind.path = "/blind";
        blind.usage = blind.local = root.usage = 3 * gib;
        fake_.accounts = {root, blind};
        fake_.status.usage = 3 * gib;
        sandbox_.write(sandbox_.proc() / "meminfo", meminfo_text);
        sandbox_.add_cgroup(container_);
        sandbox_.write(sandbox_.cgroup_mount() / "blind/memory.current", "10485760\n");
        sandbox_.write(sandbox_.cgroup_mount() / "blind/memory.stat",
                       "anon 4194304\nfile 1048576\nkernel 5242880\nslab 2097152\n");
    }

    std::string file(const std::string &name) { return (sandbox_.proc() / name).string(); }

    const std::string container_ = "/docker-" + std::string(64, 'a') + ".scope";
};

TEST_F(AuditVerb, SaysWhereTheMachinesAndEachCgroupsMemoryIs) {
    const json audit = run_json({"audit", "--json"});
    std::int64_t parts = 0;

    for (const auto &[key, value] : audit["machine"].items())
        parts += key == "total_bytes" ? 0 : value.get<std::int64_t>();
    EXPECT_EQ(parts, audit["machine"]["total_bytes"]);
    ASSERT_EQ(audit["cgroups"].size(), 3U);
    EXPECT_EQ(audit["cgroups"][1]["path"], "/blind");
    EXPECT_EQ(audit["cgroups"][1]["unseen_bytes"], 3 * gib);
    EXPECT_EQ(audit["cgroups"][1]["verdict"], "blind");
    EXPECT_EQ(audit["cgroups"][2]["path"], container_);
    EXPECT_EQ(audit["cgroups"][2]["verdict"], "none");

    const Ran ran = run({"audit"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.out.find("U  driver: uncharged"), std::string::npos) << ran.out;
    // 3 of 16 GiB are 13 or 14 of 72 letters, which are all there are.
    EXPECT_NE(ran.out.find(std::string(13, 'U')), std::string::npos) << ran.out;
    const auto bar = ran.out.find('[');
    EXPECT_EQ(ran.out.find(']') - bar - 1, 72U);
}

TEST_F(AuditVerb, TheMachineAloneIsTheSameMachine) {
    const json whole = run_json({"audit", "--json"});
    const int before = fake_.dumps;
    const json alone = run_json({"audit", "--machine", "--json"});

    EXPECT_EQ(fake_.dumps, before) << "nobody's accounts or processes are asked for";
    EXPECT_EQ(alone["machine"], whole["machine"]);
    EXPECT_EQ(alone["available_bytes"], whole["available_bytes"]);
    EXPECT_TRUE(alone["cgroups"].empty());
    EXPECT_TRUE(alone["shared_files"].empty());
    EXPECT_EQ(run({"audit", "--machine", "/blind"}).code, 2);
}

TEST_F(AuditVerb, TheBarIsNoWiderThanTheTerminal) {
    for (const int width : {1, 5, 40, 76, 77, 500}) {
        width_ = width;
        const std::string out = run({"audit"}).out;
        const auto bar = out.find("\n  [") + 1;

        EXPECT_EQ(out.find('\n', bar) - bar, std::clamp(width, 5, 76)) << width;
    }
}

TEST_F(AuditVerb, BookkeepingThatIsNotSeenIsUnknown) {
    EXPECT_TRUE(run_json({"audit", "--json"})["bookkeeping_slab_bytes"].is_null());
    const std::string out = run({"audit"}).out;
    EXPECT_NE(out.find("bookkeeping: unknown of the slab, unknown of vmalloc"), std::string::npos);
    EXPECT_EQ(out.find("Its notes of each page"), std::string::npos) << out;
    sandbox_.write(sandbox_.proc() / "vmallocinfo",
                   "0x0-0x5000 20480 os_alloc_mem+0x8d/0xd0 [nvidia] pages=4 vmalloc\n");
    EXPECT_EQ(run_json({"audit", "--json"})["bookkeeping_vmalloc_bytes"],
              4 * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

TEST_F(AuditVerb, WhatTheKernelHasMergedIsNotTakenForTheDrivers) {
    const auto caches = sandbox_.root() / "sys/kernel/slab";
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const char *tunables = " 32 128 1 : tunables 0 0 0 : slabdata 3 3 0\n";

    std::filesystem::create_directories(caches / ":0000032");
    std::filesystem::create_directories(caches / ":0000064");
    for (const char *name : {"nvidia_pte_cache", "ext4_extent_status"})
        std::filesystem::create_symlink(":0000032", caches / name);
    for (const char *name : {"nvidia_stack_cache", "uvm_va_range_t"})
        std::filesystem::create_symlink(":0000064", caches / name);
    sandbox_.write(sandbox_.proc() / "slabinfo", std::string("nvidia_pte_cache 9 9") + tunables +
                                                     "nvidia_stack_cache 9 9" + tunables);

    const Json audit = run_json({"audit", "--json"});
    EXPECT_EQ(audit["bookkeeping_slab_bytes"], 3 * page);
    EXPECT_EQ(audit["bookkeeping_slab_partial"], true);
    const std::string out = run({"audit"}).out;
    EXPECT_NE(out.find("bookkeeping: at least "), std::string::npos) << out;
    EXPECT_NE(out.find("Its notes of each page have no slab cache"), std::string::npos) << out;
}

TEST_F(AuditVerb, ATargetIsShownAloneEvenIfItHoldsNothing) {
    sandbox_.add_cgroup("/idle");
    const json audit = run_json({"audit", "/idle", "--json"});

    EXPECT_EQ(audit["cgroups"][0]["path"], "/idle");
    EXPECT_EQ(audit["cgroups"][0]["verdict"], "none");
}

TEST_F(AuditVerb, DiffsWithAnEarlierOne) {
    std::ofstream(file("before")) << run({"audit", "--json"}).out;
    fake_.accounts[1].usage = 4 * gib;
    fake_.status.usage = 4 * gib;

    const json diff = run_json({"audit", "--json", "--diff", file("before").c_str()})["diff"];
    EXPECT_EQ(diff["machine"]["driver_uncharged_bytes"], gib);
    EXPECT_EQ(diff["machine"]["unexplained_bytes"], -static_cast<std::int64_t>(gib));
    EXPECT_EQ(diff["machine"]["total_bytes"], 0);
    EXPECT_EQ(diff["available"]["change_bytes"], 0);
    EXPECT_EQ(diff["cgroups"][1]["path"], "/blind");
    EXPECT_EQ(diff["cgroups"][1]["unseen_bytes"], gib);
    EXPECT_NE(run({"audit", "--diff", file("before").c_str()}).out.find("+1.00 GiB"),
              std::string::npos);
}

TEST_F(AuditVerb, SaysWhereMemAvailableWent) {
    const auto meminfo = [&](std::uint64_t free, std::uint64_t anonymous) {
        sandbox_.write(sandbox_.proc() / "meminfo",
                       fmt::format("MemTotal: 16777216 kB\nMemFree: {0} kB\nMemAvailable: {0} kB\n"
                                   "AnonPages: {1} kB\n",
                                   free >> 10, anonymous >> 10));
    };

    meminfo(8 * gib, gib);
    std::ofstream(file("before")) << run({"audit", "--json"}).out;
    meminfo(4 * gib, 3 * gib);
    fake_.status.usage += gib;
    const json available =
        run_json({"audit", "--json", "--diff", file("before").c_str()})["diff"]["available"];
    EXPECT_EQ(available["change_bytes"], -4 * static_cast<std::int64_t>(gib));
    EXPECT_EQ(available["taken"]["anonymous_bytes"], 2 * gib);
    EXPECT_EQ(available["taken"]["driver_uncharged_bytes"], gib);
    EXPECT_EQ(available["taken"]["unexplained_bytes"], gib);
    EXPECT_EQ(available["taken"]["total_bytes"], 4 * gib);
    EXPECT_EQ(available["accounted_percent"], 75);
    const std::string out = run({"audit", "--diff", file("before").c_str()}).out;
    EXPECT_NE(out.find("MemAvailable fell by 4.00 GiB; 75.0 % of that is accounted for"),
              std::string::npos)
        << out;

    // Nothing is guessed about an audit by an earlier version.
    json earlier = json::parse(std::ifstream(file("before")));
    earlier.erase("taken");
    std::ofstream(file("before")) << earlier;
    EXPECT_TRUE(run_json({"audit", "--json", "--diff", file("before").c_str()})["diff"]["available"]
                    .is_null());
}

TEST_F(AuditVerb, PoolsThatTheDriverDeclaresAreNoPartTwice) {
    const json without = run_json({"audit", "--json"});
    fake_.status.pools = 21 * mib;
    const json with = run_json({"audit", "--json"});

    EXPECT_EQ(with["machine"]["driver_pools_bytes"], 21 * mib);
    EXPECT_EQ(with["machine"]["kernel_other_bytes"],
              without["machine"]["kernel_other_bytes"].get<std::int64_t>() -
                  21 * std::int64_t{mib});
    EXPECT_EQ(with["machine"]["unexplained_bytes"], without["machine"]["unexplained_bytes"]);
    // All of them are available: nothing is taken of that.
    EXPECT_EQ(with["taken"]["driver_pools_bytes"], 0);
    EXPECT_EQ(with["taken"]["kernel_other_bytes"], without["taken"]["kernel_other_bytes"]);
}

TEST_F(AuditVerb, WhatPoolsHoldIsAPartAndUnknownIsNone) {
    sandbox_.write(
        sandbox_.proc() / "meminfo",
        std::regex_replace(meminfo_text, std::regex("KReclaimable: .*"), "KReclaimable: 0 kB"));
    const json without = run_json({"audit", "--json"})["machine"];
    fake_.status.pools = 21 * mib;
    std::ofstream(file("before")) << run({"audit", "--json"}).out;
    const json with = run_json({"audit", "--json"})["machine"];

    EXPECT_EQ(with["driver_pools_bytes"], 21 * mib);
    EXPECT_EQ(with["unexplained_bytes"],
              without["unexplained_bytes"].get<std::int64_t>() - 21 * std::int64_t{mib});
    EXPECT_NE(run({"audit"}).out.find("P  driver: its pools"), std::string::npos);

    fake_.status.pools.reset();
    const json diff = run_json({"audit", "--json", "--diff", file("before").c_str()});
    EXPECT_TRUE(diff["machine"]["driver_pools_bytes"].is_null());
    EXPECT_TRUE(diff["diff"]["machine"]["driver_pools_bytes"].is_null());
    EXPECT_EQ(diff["diff"]["machine"]["unexplained_bytes"], 21 * mib);
    const Ran ran = run({"audit", "--diff", file("before").c_str()});
    EXPECT_NE(ran.out.find("can't be asked"), std::string::npos) << ran.out;
    EXPECT_TRUE(std::regex_search(ran.out, std::regex("P  driver: its pools +unknown"))) << ran.out;
}

TEST_F(AuditVerb, NumbersThatNoMachineHasDontOverflow) {
    sandbox_.write(
        file("before"),
        R"({"schema":1,"machine":{"total_bytes":-9223372036854775808,"free_bytes":1e300},)"
        R"("cgroups":[{"path":"/blind","usage_bytes":18446744073709551615,)"
        R"("unseen_bytes":-9223372036854775808}]})");

    const json diff = run_json({"audit", "--json", "--diff", file("before").c_str()})["diff"];
    EXPECT_EQ(diff["machine"]["total_bytes"], INT64_MAX);
    EXPECT_EQ(diff["cgroups"][1]["unseen_bytes"], INT64_MAX);
    EXPECT_EQ(run({"audit", "--diff", file("before").c_str()}).code, 0);
}

TEST_F(AuditVerb, WhatIsNoAuditIsRefused) {
    for (const char *text : {"", "{}", "[1]", R"({"schema":"1"})", R"({"schema":1,"machine":7})"}) {
        sandbox_.write(file("before"), text);

        const Ran ran = run({"audit", "--diff", file("before").c_str()});
        EXPECT_EQ(ran.code, 1) << text;
        EXPECT_NE(ran.err.find("is no audit of schema 1\nhint: "), std::string::npos) << ran.err;
        EXPECT_EQ(ran.out, "");
    }
    EXPECT_NE(
        run({"audit", "--diff", "/nowhere"}).err.find("--diff: cannot read '/nowhere': No such"),
        std::string::npos);
    EXPECT_EQ(run({"audit", "/nowhere"}).code, 1);
}

/// The page draws the parts itself: by the same names, with the same labels and colours.
TEST(AuditPage, ThePageHasEachPart) {
    const std::regex part(R"re(\n\t\['(\w+)', ['"]([^\n]*)['"], '(#\w+)'\],)re");
    std::ostringstream text;
    std::string found;
    std::string wanted;

    text << std::ifstream(test::source("userspace/web/page.js")).rdbuf();
    const std::string script = text.str();
    for (std::sregex_iterator at(script.begin(), script.end(), part), end; at != end; ++at)
        found += (*at)[1].str() + ", " + (*at)[2].str() + ", " + (*at)[3].str() + '\n';
    for (const PartForm &form : part_forms())
        wanted += fmt::format("{}, {}, {}\n", form.name, form.label, form.colour);
    EXPECT_EQ(found, wanted);
}

} // namespace
} // namespace umacct
