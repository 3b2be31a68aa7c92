// SPDX-License-Identifier: GPL-2.0-or-later
/// The file of "umacct history --html": complete, harmless whatever the names of cgroups, at the
/// requested path, and without names on request.
#include <cstdlib>
#include <ctime>
#include <regex>
#include <set>

#include "lib/host/clock.h"
#include "lib/text.h"
#include "tests/history_story.h"
#include "tests/runtime_folders.h"
#include "tests/tool_fixture.h"
#include "tool/print/markup.h"
#include "tool/report/plot.h"
#include "tool/report/redact.h"

namespace umacct::test {
namespace {

using history::Figure;
using history::Holding;
using history::Moment;
using history::Named;
using tool::Redactor;

/// 2026-11-25 03:00 UTC
constexpr std::int64_t three = 1'795'575'600'000;

constexpr const char *hostile = "/\"><script>alert('x')</script>&amp;<!--";

bool has(const std::string &text, const std::string &words) {
    return text.find(words) != std::string::npos;
}

// --- markup ----------------------------------------------------------------------

TEST(MarkupTest, NothingFromElsewhereIsATag) {
    std::ostringstream out;
    tool::Markup markup(out);

    markup.add("<b>").text("<i>&\"'").format("<u a=\"{}\">{}{:.1f}</u>", hostile,
                                             std::string("</u>"), 1.25);
    EXPECT_EQ(out.str(),
              "<b>&lt;i&gt;&amp;&quot;&#39;<u a=\"/&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)"
              "&lt;/script&gt;&amp;amp;&lt;!--\">&lt;/u&gt;1.2</u>");
}

TEST(MarkupTest, WhatIsNotPrintableIsAMark) {
    // U+202E, in two parts: a compiler takes the whole for an attack on who reads this.
    const std::string overriding = std::string("\xe2\x80") + "\xae";

    EXPECT_EQ(tool::escaped(std::string("a\0b\x1b\xff", 5) + overriding), "a?b???");
}

// --- redaction -------------------------------------------------------------------

TEST(RedactTest, TheHashIsSipHash) {
    std::string text;

    // Test vector of the paper that describes it.
    for (char c = 0; c < 15; ++c)
        text += c;
    EXPECT_EQ(tool::keyed_hash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, text),
              0xa129ca6149be45e5U);
    EXPECT_EQ(tool::keyed_hash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, ""), 0x726fdb47dd0e0e31U);
}

class RedactorTest : public testing::Test {
protected:
    RedactorTest() { sandbox_.write("etc/machine-id", "0123456789abcdef0123456789abcde0\n"); }

    Sandbox sandbox_;
    Redactor redactor_{{1, 2}};
};

TEST_F(RedactorTest, APseudonymIsTheMachinesAlone) {
    const Redactor one(tool::redaction_key(sandbox_.root()));
    const Redactor again(tool::redaction_key(sandbox_.root()));
    EXPECT_EQ(one.name("vllm"), again.name("vllm"));
    EXPECT_NE(one.name("vllm"), one.name("llama"));

    sandbox_.write("etc/machine-id", "0123456789abcdef0123456789abcde1\n");
    EXPECT_NE(one.name("vllm"), Redactor(tool::redaction_key(sandbox_.root())).name("vllm"));
}

TEST_F(RedactorTest, WithoutAnIdNobodyKnowsTheKey) {
    for (const char *id : {"", "0123", "zz23456789abcdef0123456789abcde0\n", "uninitialized\n",
                           "00000000000000000000000000000000\n"}) {
        sandbox_.write("etc/machine-id", id);
        EXPECT_NE(tool::redaction_key(sandbox_.root()), tool::redaction_key(sandbox_.root())) << id;
    }
}

TEST_F(RedactorTest, OfAPathEveryNameThatIsNotEveryMachines) {
    const std::string service = redactor_.path("/system.slice/ollama.service");

    EXPECT_TRUE(std::regex_match(service, std::regex("/system\\.slice/x[0-9a-f]{8}\\.service")))
        << service;
    EXPECT_EQ(service, "/system.slice/" + redactor_.name("ollama") + ".service");
    EXPECT_EQ(redactor_.path("/"), "/");
    EXPECT_EQ(redactor_.path(""), "");
    EXPECT_FALSE(has(redactor_.path("/user.slice/user-1000.slice"), "1000"));
    EXPECT_TRUE(redactor_.path("/a//b").starts_with('/' + redactor_.name("a") + "//"));
    EXPECT_FALSE(has(redactor_.path(hostile), "script"));
}

TEST_F(RedactorTest, OfAnOwnerTheRuntimeStays) {
    EXPECT_EQ(redactor_.owner("docker vllm"), "docker " + redactor_.name("vllm"));
    EXPECT_EQ(redactor_.owner("pod default/llm-0"),
              "pod " + redactor_.name("default") + '/' + redactor_.name("llm-0"));
    EXPECT_EQ(redactor_.owner("nginx.service"), redactor_.name("nginx") + ".service");
    EXPECT_FALSE(has(redactor_.owner("secret docker"), "secret"));
    EXPECT_FALSE(has(redactor_.owner("secret docker"), "docker"));
}

TEST_F(RedactorTest, OfASentenceItsNamesAndForeignPaths) {
    const auto sentence = [&](const std::string &text) {
        return redactor_.sentence(text, {"py", "python3", "my tool"});
    };

    EXPECT_EQ(sentence("asked: python3 (1), my tool (2), py (3)"),
              "asked: " + redactor_.name("python3") + " (1), " + redactor_.name("my tool") +
                  " (2), " + redactor_.name("py") + " (3)");
    EXPECT_EQ(sentence("a pypy of happy"), "a pypy of happy");
    EXPECT_EQ(sentence("its log is in /var/lib/dkms/umacct; see /etc/umacct.toml."),
              "its log is in /var/lib/dkms/umacct; see /etc/umacct.toml.");
    for (const char *path :
         {"/home/alice/x", "/sys/fs/cgroup/alice", "/run/user/alice", "/dev/shm/alice",
          "/proc/7/root/alice", "/var/lib/docker/alice", "/usr/lib/../../home/alice", "/alice",
          "/etc/umacct.toml.alice", "'/alice'", "(/alice)", "path=/alice"})
        EXPECT_FALSE(has(sentence(std::string("see ") + path + " there"), "alice")) << path;
}

TEST_F(RedactorTest, OneThatKeepsEverythingKeepsIt) {
    const Redactor keeps;

    EXPECT_EQ(keeps.path(hostile), hostile);
    EXPECT_EQ(keeps.owner("docker vllm"), "docker vllm");
    EXPECT_EQ(keeps.sentence("/home/alice", {"alice"}), "/home/alice");
}

// --- the plot --------------------------------------------------------------------

class PlotTest : public testing::Test {
protected:
    PlotTest() {
        add(1, "/");
        add(2, "/demo");
        add(3, "/demo/vllm");
        moment_.interval_ms = 1000;
        moment_.time_ms = three;
        moment_.state.machine[Figure::total] = 128 * gib;
        moment_.state.machine[Figure::free] = 50 * gib;
        moment_.state.machine[Figure::cached] = 20 * gib;
        moment_.state.machine[Figure::driver] = 2 * gib;
        moment_.state.machine[Figure::pools] = gib;
        moment_.state.accounts[1][Holding::driver] = 30 * gib;
        moment_.state.accounts[2][Holding::driver] = 30 * gib;
        moment_.state.accounts[3][Holding::driver] = 24 * gib;
    }

    void add(std::uint32_t key, const std::string &path) {
        names_[key] = {.id = key, .path = path};
    }

    tool::Plot plot() {
        return tool::make_plot(moments_.empty() ? std::vector{moment_} : moments_, names_,
                               [](const Named &named) { return named.path; });
    }

    static std::uint64_t last(const tool::Plot &plot, const std::string &band) {
        for (const tool::Band &each : plot.bands) {
            if (each.name == band)
                return each.bytes.back();
        }
        return 0;
    }

    static std::uint64_t sum(const tool::Plot &plot, std::size_t at) {
        std::uint64_t sum = 0;

        for (const tool::Band &each : plot.bands)
            sum += each.bytes.at(at);
        return sum;
    }

    std::map<std::uint32_t, Named> names_;
    Moment moment_;
    std::vector<Moment> moments_;
};

TEST_F(PlotTest, ItAddsUpToAllAndCountsNothingTwice) {
    const tool::Plot made = plot();

    EXPECT_EQ(sum(made, 0), 128 * gib);
    EXPECT_EQ(last(made, "/demo/vllm"), 24 * gib);
    EXPECT_EQ(last(made, "/demo"), 6 * gib);
    EXPECT_EQ(last(made, "driver, for itself"), 3 * gib);
    EXPECT_EQ(last(made, "page cache"), 20 * gib);
    EXPECT_EQ(last(made, "free"), 50 * gib);
    EXPECT_EQ(last(made, "programs and kernel beside"), (128 - 50 - 20 - 3 - 30) * gib);
}

TEST_F(PlotTest, WhoIsBelowACgroupThatIsNotRecordedIsBelowTheNextOne) {
    moment_.state.accounts.erase(2);
    EXPECT_EQ(last(plot(), "/demo/vllm"), 24 * gib);
    EXPECT_EQ(last(plot(), "other accounts"), 6 * gib) << "what / has beside it";
}

TEST_F(PlotTest, AccountsThatHaveMoreThanThereIsLeaveWhatIsFree) {
    moment_.state.accounts[3][Holding::current] = 300 * gib;
    const tool::Plot made = plot();

    EXPECT_EQ(sum(made, 0), 128 * gib);
    EXPECT_EQ(last(made, "free"), 50 * gib);
    EXPECT_EQ(last(made, "page cache"), 0U);
}

TEST_F(PlotTest, ManyAccountsShareABand) {
    for (std::uint32_t i = 10; i < 40; ++i) {
        add(i, "/many/" + std::to_string(i));
        moment_.state.accounts[i][Holding::current] = i * mib;
    }
    const tool::Plot made = plot();

    EXPECT_EQ(made.bands.size(), 7U + 5U);
    EXPECT_EQ(sum(made, 0), 128 * gib);
    EXPECT_GT(last(made, "other accounts"), 0U);
    EXPECT_EQ(last(made, "/many/39"), 39 * mib);
    EXPECT_EQ(last(made, "/many/12"), 0U);
}

TEST_F(PlotTest, OfTooManyMomentsTheTightestStay) {
    tool::Thinned thinned({.since_ms = three, .until_ms = three + 1'000'000}, 10);

    for (std::int64_t i = 0; i <= 1000; ++i) {
        moment_.time_ms = three + i * 1000;
        moment_.state.machine[Figure::available] = i == 555 ? gib : 50 * gib;
        thinned.take(moment_);
    }
    const auto kept = thinned.end();
    EXPECT_LE(kept.size(), 12U);
    EXPECT_EQ(kept.back().time_ms, three + 1'000'000);
    EXPECT_TRUE(std::ranges::any_of(kept, [](const Moment &each) {
        return each.time_ms == three + 555'000 && history::obtainable(each.state.machine) == gib;
    }));
}

TEST_F(PlotTest, TheAxesHaveRoundNumbers) {
    setenv("TZ", "Asia/Kolkata", 1); // half an hour beside
    tzset();
    moments_ = {moment_, moment_};
    moments_.back().time_ms += 3'600'000;
    moments_.front().time_ms += 17;
    const auto ticks = time_ticks(plot());
    ASSERT_FALSE(ticks.empty());
    EXPECT_LE(ticks.size(), 7U);
    EXPECT_EQ(ticks.front().text, "08:40");
    for (const tool::Tick &tick : ticks) {
        EXPECT_GE(tick.at, -1e-3);
        EXPECT_LE(tick.at, 1);
    }
    setenv("TZ", "UTC", 1);
    tzset();
    const auto sizes = tool::size_ticks(121 * gib);
    EXPECT_EQ(sizes.size(), 4U);
    EXPECT_EQ(sizes.back().text, "96 GiB");
    EXPECT_TRUE(tool::size_ticks(0).size() == 1);
}

TEST_F(PlotTest, WhereNothingWasRecordedNothingIsDrawn) {
    const auto moves = [&] {
        std::ostringstream out;

        tool::print_plot(out, plot(), "title");
        const std::string text = out.str();
        const std::size_t at = text.find("class=\"free\"");
        return std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                          text.begin() + static_cast<std::ptrdiff_t>(text.find("<title>", at)),
                          'Z');
    };

    for (int i = 0; i < 100; ++i) {
        moments_.push_back(moment_);
        moments_.back().time_ms += 1000 * i + (i < 50 ? 0 : 60'000);
    }
    EXPECT_EQ(moves(), 2) << "one before the gap, one after it";
}

// --- the verb --------------------------------------------------------------------

class ReportTest : public ToolFixture {
protected:
    ReportTest() {
        setenv("TZ", "UTC", 1);
        tzset();
        sandbox_.write("proc/sys/kernel/random/boot_id", "two\n");
        sandbox_.write("proc/sys/kernel/osrelease", "6.12.1-test\n");
        sandbox_.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
        sandbox_.write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Test <OS> 1\"\n");
        fake_.status.memory_total = 128 * gib;
        fake_.status.memory_free = 90 * gib;
        fake_.status.memory_available = 100 * gib;
    }

    /// A boot that ran out of memory, with names that must not get into a report.
    void tell(const std::string &path = "/docker/topsecret") {
        Story story(sandbox_, "one", three);
        history::Holdings &account = story.account(path);

        account[Holding::hard] = 120 * gib;
        story.account("/other" + path);
        story.pass(60);
        story.writer().name_accounts(
            [](const std::string &) { return "docker </title><script>topsecret"; });
        story.pass(99, [&] {
            account[Holding::driver] += gib;
            story.set_available(story.sample.machine[Figure::available] - gib);
        });
        story.happenings.push_back({.time_ms = three + 159'000,
                                    .type = "reserve_refused",
                                    .path = path,
                                    .limit_path = path,
                                    .comm = "<topsecret>",
                                    .pid = 7,
                                    .size = gib});
        story.happenings.push_back({.time_ms = three + 159'500,
                                    .type = "guard",
                                    .path = path,
                                    .text = "froze topsecret's <b>cgroup</b>"});
        story.pass(1);
        Story(sandbox_, "two", three + 3'600'000).pass(2);
    }

    std::string page(std::vector<const char *> words = {}) {
        words.insert(words.begin(), {"history", "--html"});
        const Ran ran = run(words);

        EXPECT_EQ(ran.code, 0) << ran.err;
        return ran.out;
    }

    /// Tags that a page has, with how often.
    static std::map<std::string, int> tags_of(const std::string &text) {
        static const std::regex tag("<([a-zA-Z!/][a-zA-Z0-9]*)");
        std::map<std::string, int> tags;

        for (std::sregex_iterator it(text.begin(), text.end(), tag), end; it != end; ++it)
            ++tags[(*it)[1]];
        return tags;
    }
};

TEST_F(ReportTest, OfNowWithoutAHistory) {
    fake_.accounts.push_back({.id = sandbox_.add_cgroup("/a"), .path = "/a", .usage = 5 * gib});
    const std::string text = page();

    EXPECT_TRUE(text.starts_with("<!DOCTYPE html>"));
    EXPECT_TRUE(text.ends_with("</html>\n"));
    EXPECT_TRUE(has(text, "There is no history")) << text;
    EXPECT_TRUE(has(text, "<td class=\"who\">/a</td><td class=\"n\">5.00 GiB</td>")) << text;
    EXPECT_TRUE(has(text, "MemTotal</th><td class=\"n\">128.00 GiB"));
    EXPECT_TRUE(has(text, "What the doctor says"));
    EXPECT_TRUE(has(text, "<td>6.12.1-test</td>"));
    EXPECT_TRUE(has(text, "<td>Test &lt;OS&gt; 1</td>"));
    EXPECT_TRUE(has(text, "<td>" UMACCT_VERSION "</td>"));
    EXPECT_FALSE(has(text, "How it went"));
}

TEST_F(ReportTest, OwnersComeFirstTheLargestAtTheTop) {
    for (const auto &[path, usage] : {std::pair{"/small", 5 * gib}, {"/large", 20 * gib}})
        fake_.accounts.push_back({.id = sandbox_.add_cgroup(path), .path = path, .usage = usage});
    const std::string text = page();
    const std::size_t large = text.find("</svg>/large</td>");

    ASSERT_NE(large, std::string::npos) << text;
    EXPECT_LT(large, text.find("</svg>/small</td>"));
    EXPECT_LT(text.find("</svg>/small</td>"), text.find("</svg>driver, for itself</td>"));
}

TEST_F(ReportTest, ItSaysSinceWhenNothingWasRecorded) {
    const auto now_ms = static_cast<std::int64_t>(now_ns(CLOCK_REALTIME) / 1'000'000);

    Story(sandbox_, "two", now_ms - 600'000).pass(60);
    const std::string text = page();

    EXPECT_TRUE(has(text, "s last sample is of ")) << text;
}

TEST_F(ReportTest, ItSaysThatNothingWasRecorded) {
    Story(sandbox_, "two", three).pass(2);
    const std::string text = page();

    EXPECT_TRUE(has(text, "recorded nothing of the time before this report")) << text;
}

TEST_F(ReportTest, WithoutTheModuleTheDoctorSaysWhy) {
    loaded_ = false;
    sandbox_.write("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 512 kB\nMemAvailable: 600 kB\n");
    const std::string text = page();

    EXPECT_TRUE(has(text, "<td class=\"fail\">fail</td><td>module</td>")) << text;
    EXPECT_TRUE(has(text, "<th scope=\"row\">module</th><td>not there</td>"));
    EXPECT_TRUE(has(text, "MemTotal</th><td class=\"n\">1.00 MiB"));
}

TEST_F(ReportTest, OfTheStartBeforeItHasTheParagraphTheCourseAndTheEvents) {
    tell("/vllm");
    const std::string text = page({"--boot", "-1"});

    EXPECT_TRUE(has(text, "The recording ends at 2026-11-25 03:02:40 without an orderly stop"))
        << text;
    EXPECT_TRUE(has(text, "How it went"));
    EXPECT_TRUE(has(text, "2026-11-25 03:00:01 to 03:02:40"));
    EXPECT_TRUE(has(text, "<td>reserve_refused</td>"));
    EXPECT_TRUE(has(text, "class=\"mark bad\""));
    EXPECT_TRUE(has(text, "<td class=\"n\">120.00 GiB</td>"));
}

TEST_F(ReportTest, ItAsksNobodyForAnything) {
    tell();
    const std::string text = page({"--boot", "-1"});

    EXPECT_TRUE(has(text, "default-src 'none'"));
    EXPECT_FALSE(std::regex_search(text, std::regex("(src|href|srcset|data|action|poster)=")));
    EXPECT_FALSE(std::regex_search(text, std::regex("url\\(|@import|https?:")));
}

TEST_F(ReportTest, NoNameIsATag) {
    tell("/harmless");
    const auto expected = tags_of(page({"--boot", "-1"}));
    std::filesystem::remove_all(sandbox_.root() / history::folder);
    tell(hostile);
    const std::string text = page({"--boot", "-1"});

    EXPECT_EQ(tags_of(text), expected);
    EXPECT_TRUE(has(text, "&lt;script&gt;"));
    EXPECT_FALSE(has(text, "<script"));
    EXPECT_FALSE(has(text, "<b>cgroup"));
    EXPECT_EQ(tags_of(page({"--boot", "-1", "--svg"})).count("script"), 0U);
}

TEST_F(ReportTest, RedactedItHasNoName) {
    sandbox_.write("proc/7/comm", "topsecret\n");
    tell();
    for (const std::vector<const char *> &words :
         {std::vector<const char *>{"--boot", "-1", "--redact"},
          {"--boot", "-1", "--redact", "--svg"}}) {
        const std::string plain = page({words[0], words[1]});
        const std::string text = page(words);

        EXPECT_TRUE(has(plain, "topsecret"));
        EXPECT_FALSE(has(text, "topsecret")) << text;
        EXPECT_FALSE(has(text, "0123456789abcdef"));
        EXPECT_FALSE(has(text, sandbox_.root().string())) << text;
        EXPECT_TRUE(std::regex_search(text, std::regex("docker x[0-9a-f]{8}"))) << text;
        // All but when it was made.
        const std::size_t from = has(text, "<h2>") ? text.find("<h2>") : 0;
        EXPECT_EQ(text.substr(from), page(words).substr(from)) << "the same names again";
    }
}

TEST_F(ReportTest, RedactedOfNowItHasNoNameEither) {
    fake_.accounts.push_back({.id = sandbox_.add_cgroup("/topsecret"),
                              .path = "/topsecret/topsecret.service",
                              .usage = 5 * gib});
    EXPECT_TRUE(has(page(), "topsecret"));
    const std::string text = page({"--redact"});
    EXPECT_FALSE(has(text, "topsecret")) << text;
    EXPECT_FALSE(has(text, sandbox_.root().string())) << text;
}

TEST_F(ReportTest, WhatTheDoctorNamesARedactedReportDoesNot) {
    constexpr std::int64_t second = 1000;
    const std::int64_t now = std::time(nullptr) * second;
    const std::string id(64, 'a');
    const std::string path = "/system.slice/docker-" + id + ".scope";
    const RuntimeFolders folders(sandbox_);
    Account account{.id = sandbox_.add_cgroup(path), .path = path};
    Story story(sandbox_, "two", now - 10 * second);

    folders.add_docker(id, "topsecret");
    account.usage = account.local = 30 * mib;
    fake_.accounts = {{.id = sandbox_.add_cgroup("/"), .path = "/"}, account};
    fake_.accounts[0].failed = 1;
    fake_.status.available = 0;
    sandbox_.write("cgroup" + path + "/memory.current", "4194304\n");
    sandbox_.write("cgroup" + path + "/memory.max", "16777216\n");
    sandbox_.write("proc/uptime", "10000.00 20000.00\n");
    sandbox_.write("dev/kmsg", "4,100,9900000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask="
                               "(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=" +
                                   path + "/topsecret,task=topsecret,pid=12,uid=0\n");
    for (const char *file : {"libnvidia-ml.so", "libnvidia-ml.so.1", "libumacct-nvml-real.so.1"})
        sandbox_.write(std::string("var/lib/umacct/nvml/") + file, "");
    sandbox_.write("proc/7/comm", "topsecret\n");
    sandbox_.write("proc/7/maps", "/usr/lib/libnvidia-ml.so.580\n");
    story.happenings.push_back(
        {.time_ms = now, .type = "failed", .path = path, .limit_path = path, .size = gib});
    story.pass(2);

    std::set<std::string> named;
    const nlohmann::json doctor = run_json({"doctor", "--json"});
    for (const auto &check : doctor["checks"]) {
        if (has(check.dump(), "topsecret"))
            named.insert(check["check"]);
    }
    EXPECT_EQ(named, (std::set<std::string>{"killed", "memory", "memory.max", "nvml", "requests"}));
    for (const std::string &text :
         {page({"--redact"}), run({"doctor", "--spark-report", "-"}).out}) {
        EXPECT_FALSE(has(text, "topsecret")) << text;
        EXPECT_FALSE(has(text, id)) << text;
    }
    EXPECT_TRUE(std::regex_search(page({"--redact"}), std::regex("docker x[0-9a-f]{8} holds")));
}

TEST_F(ReportTest, ThePictureAlone) {
    tell("/vllm");
    const std::string svg = page({"--boot", "-1", "--svg"});

    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST_F(ReportTest, IntoAFile) {
    const std::string file = (sandbox_.root() / "report.html").string();
    const auto document = run_json({"history", "--html", file.c_str(), "--json"});

    EXPECT_EQ(document["format"], "html");
    EXPECT_EQ(document["size_bytes"], std::filesystem::file_size(file));
    EXPECT_EQ(run({"history", "--html", "--json"}).code, 2);
    EXPECT_EQ(run({"history", "--html", "/proc/none/at/all"}).code, 1);
    EXPECT_EQ(run({"history", "--html", "--since", "yesterday"}).code, 3) << "there is no history";
    tell();
    EXPECT_EQ(run({"history", "--html", "--since", "yesterday"}).code, 2);
    EXPECT_EQ(run({"history", "--html", "--boot", "-5"}).code, 1);
}

} // namespace
} // namespace umacct::test
