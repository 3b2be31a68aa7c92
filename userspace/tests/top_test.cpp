// SPDX-License-Identifier: GPL-2.0-or-later
/// top as its users meet it: keys and screens on a terminal of the test's, batches
/// and JSON without one, and what a wrong command line gets.
#include <cerrno>
#include <clocale>
#include <deque>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "lib/error.h"
#include "tests/grid_text.h"
#include "tests/history_story.h"
#include "tests/tool_fixture.h"
#include "tool/print/columns.h"
#include "tool/top/detail.h"
#include "tool/top/draw.h"
#include "tool/top/terminal.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::line_of;
using test::Ran;
using test::text_of;
using tool::Grid;
using tool::Key;
using tool::Size;
using tool::Tone;

using test::gib;
using test::mib;

/// The event instead of a key's wait: a key, or time passing.
struct Step {
    std::optional<Key> key;
    std::function<void()> before = {};
};

struct FakeScreen {
    Size size{30, 100};
    std::deque<Step> steps = {};
    std::vector<Grid> shown = {};
    bool open = false;

    const Grid &last() const { return shown.back(); }

    std::string text() const { return shown.empty() ? "" : text_of(shown.back()); }
};

class FakeTerminal : public tool::Terminal {
public:
    explicit FakeTerminal(FakeScreen &screen) : screen_(screen) { screen_.open = true; }

    FakeTerminal(const FakeTerminal &) = delete;
    FakeTerminal &operator=(const FakeTerminal &) = delete;
    FakeTerminal(FakeTerminal &&) = delete;
    FakeTerminal &operator=(FakeTerminal &&) = delete;

    ~FakeTerminal() override { screen_.open = false; }

    Size size() const override { return screen_.size; }

    void show(const Grid &grid) override { screen_.shown.push_back(grid); }

    /// Gone when the steps are.
    std::optional<Key> wait(std::chrono::milliseconds /*time*/) override {
        if (screen_.steps.empty())
            return Key::stop;

        const Step step = screen_.steps.front();
        screen_.steps.pop_front();
        if (step.before)
            step.before();
        return step.key;
    }

private:
    FakeScreen &screen_;
};

class Top : public test::ToolFixture {
protected:
    void SetUp() override {
        std::setlocale(LC_CTYPE, "C.UTF-8");
        add("/", 1, {}, 0);
        slice_ = add("/demo", sandbox_.add_cgroup("/demo"), 1, 336 * mib);
        vllm_ = add("/demo/vllm", sandbox_.add_cgroup("/demo/vllm"), slice_, 240 * mib);
        llama_ = add("/demo/llama", sandbox_.add_cgroup("/demo/llama"), slice_, 96 * mib);
        fake_.accounts[0].usage = 336 * mib;
        fake_.status.usage = 336 * mib;
        fake_.status.available = 2048 * mib;
        add_client(41, "vllm", vllm_, "/demo/vllm", 240 * mib);
        add_client(42, "llama", llama_, "/demo/llama", 96 * mib);
        sandbox_.write(sandbox_.cgroup_mount() / "demo/vllm/memory.current", "135168\n");
    }

    void TearDown() override { std::setlocale(LC_CTYPE, "C"); }

    std::uint64_t add(const std::string &path, std::uint64_t id,
                      std::optional<std::uint64_t> parent, std::uint64_t usage) {
        Account account;

        account.id = id;
        account.parent_id = parent;
        account.path = path;
        account.usage = account.peak = usage;
        fake_.accounts.push_back(account);
        return id;
    }

    void add_client(std::uint32_t pid, const std::string &comm, std::uint64_t account,
                    const std::string &path, std::uint64_t usage) {
        Client client;

        client.pid = pid;
        client.comm = comm;
        client.account_id = account;
        client.path = path;
        client.usage = client.peak = usage;
        fake_.clients.push_back(client);
    }

    void press(Key key) { screen_.steps.push_back({key, {}}); }

    void type(std::string_view text) {
        for (const char c : text)
            press(Key{static_cast<unsigned char>(c)});
    }

    /// Time passes, after what happens meanwhile.
    void pass(std::function<void()> meanwhile = {}) {
        screen_.steps.push_back({std::nullopt, std::move(meanwhile)});
    }

    /// Runs top with the steps so far on the fake terminal.
    Ran top(std::vector<const char *> words = {}) {
        std::ostringstream out;
        std::ostringstream err;

        words.insert(words.begin(), {"umacct", "top"});
        const int code = tool::run_tool(
            static_cast<int>(words.size()), words.data(),
            {.connect = [this] { return connect(); },
             .output = {.out = out, .err = err, .terminal = true, .proc = sandbox_.proc()},
             .root = sandbox_.proc().parent_path(),
             .open_terminal = [this] { return std::make_unique<FakeTerminal>(screen_); }});
        EXPECT_FALSE(screen_.open);
        return {code, out.str(), err.str()};
    }

    /// The first line on the last screen that contains it.
    std::string line(std::string_view part) const {
        const Grid &grid = screen_.last();

        for (int row = 0; row < grid.size().rows; ++row) {
            if (line_of(grid, row).find(part) != std::string::npos)
                return line_of(grid, row);
        }
        return "";
    }

    std::string bottom() const { return line_of(screen_.last(), screen_.last().size().rows - 1); }

    Tone tone_of(std::string_view part) const {
        const Grid &grid = screen_.last();

        for (int row = 0; row < grid.size().rows; ++row) {
            const auto at = line_of(grid, row).find(part);

            if (at != std::string::npos) // ASCII lines only
                return grid.row(row).at(at).tone;
        }
        ADD_FAILURE() << "nowhere: " << part;
        return Tone::plain;
    }

    bool has(std::string_view part) const { return !line(part).empty(); }

    FakeScreen screen_;
    std::uint64_t slice_ = 0;
    std::uint64_t vllm_ = 0;
    std::uint64_t llama_ = 0;
};

// --- the screen ---------------------------------------------------------------

TEST_F(Top, TheScreenHasTheMachineTheTreeAndTheKeys) {
    screen_.size = {14, 100};
    fake_.status.reserve = 1024 * mib;
    fake_.accounts[1].hard = fake_.accounts[1].effective = 1024 * mib;
    fake_.accounts[2].effective = fake_.accounts[3].effective = 1024 * mib;

    const Ran ran = top();
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out + ran.err, "");
    EXPECT_EQ("\n" + screen_.text(), R"(
umacct top                                                                      by total   every 1 s
Memory [▓▒the rest░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░     ╌╌╌╌╌╌]
2.00 GiB of 16.00 GiB available   ╌ reserve 1.00 GiB
ACCOUNT                TOTAL     USAGE     LIMIT      PEAK         RATE   CURRENT HISTORY
▾ /                14.00 GiB 336.0 MiB       max       0 B            -         -                  █
  ▾ demo           336.0 MiB 336.0 MiB  1.00 GiB 336.0 MiB            -         -                  █
      vllm         240.1 MiB 240.0 MiB  1.00 GiB 240.0 MiB            - 132.0 KiB                  █
      llama        96.00 MiB 96.00 MiB  1.00 GiB 96.00 MiB            -         -                  █





h help  Enter more  p processes  s sort  / filter  l limit  K kill  q quit
)");
}

TEST_F(Top, WithoutUnicodeItIsAscii) {
    std::setlocale(LC_CTYPE, "C");
    fake_.status.charged = 100 * mib;
    fake_.status.driver_usage = 1024 * mib;
    fake_.status.reserve = 1024 * mib;
    type("b");
    top();
    EXPECT_TRUE(has("Memory [....")) << screen_.text();
    EXPECT_TRUE(has("%%%%%"));
    EXPECT_TRUE(has("------]"));
    for (const char c : screen_.text())
        EXPECT_GE(c, 0);
}

TEST_F(Top, EverySizeIsDrawnAndNothingIsCutInHalf) {
    fake_.accounts[2].path = "/demo/" + std::string(300, 'x');
    for (const bool processes : {false, true}) {
        for (int columns = 1; columns <= 200; columns += columns < 10 ? 1 : 19) {
            for (int rows = 1; rows <= 16; rows += rows < 8 ? 1 : 4) {
                screen_ = FakeScreen{.size = {rows, columns}};
                if (processes)
                    type("p");
                type("h");
                press(Key::down);
                press(Key::escape);
                type("s");
                press(Key::escape);
                type("/x");
                press(Key::escape);
                type("lx");
                press(Key::enter);
                press(Key::escape);
                press(Key::enter);
                ASSERT_EQ(top().code, 0);
                ASSERT_EQ(screen_.last().size().columns, columns);
            }
        }
    }
    screen_ = FakeScreen{.size = {0, 0}};
    EXPECT_EQ(top().code, 0);
}

TEST_F(Top, EightyColumnsHaveEveryFigureAndTheHistory) {
    screen_.size = {24, 80};
    top();
    EXPECT_NE(line("vllm").find("240.1 MiB 240.0 MiB       max 240.0 MiB            -"),
              std::string::npos)
        << screen_.text();
    EXPECT_TRUE(line("USAGE").ends_with("HISTORY")) << screen_.text();
}

TEST_F(Top, ColoursSayWhatIsUncharged) {
    std::setlocale(LC_CTYPE, "C");
    fake_.status.charged = fake_.accounts[0].charged = fake_.accounts[1].charged =
        fake_.accounts[2].charged = 240 * mib;
    type("b");
    top();
    EXPECT_EQ(tone_of("240.0 MiB       max"), Tone::plain);
    EXPECT_EQ(tone_of("96.00 MiB       max"), Tone::uncharged);
    EXPECT_EQ(tone_of("# uncharged 96.00 MiB"), Tone::uncharged);
    EXPECT_EQ(tone_of("+ charged 240.0 MiB"), Tone::plain);
}

TEST_F(Top, WarningsAreOnTheScreen) {
    fake_.status.untracked = mib;
    fake_.status.untracked_count = 2;
    fake_.status.stale_count = 1;
    top();
    EXPECT_TRUE(has("warning: 2 allocations of 1.00 MiB could not be recorded"));
    EXPECT_TRUE(has("(and 1 more: 'umacct')"));
}

TEST_F(Top, RatesAndRefusalsComeWithTime) {
    pass([this] {
        fake_.accounts[2].usage = 300 * mib;
        fake_.accounts[2].refusals = 3;
        fake_.accounts[2].soft = mib;
    });
    screen_.size = {20, 160};
    std::setlocale(LC_CTYPE, "C");
    top();
    EXPECT_NE(line("vllm").find("iB/s"), std::string::npos);
    EXPECT_NE(line("vllm").find("refused"), std::string::npos);
    EXPECT_EQ(bottom(), "3 allocations refused: /demo/vllm");
    EXPECT_EQ(tone_of("3 allocations"), Tone::refused);
}

TEST_F(Top, PausedItReadsNothingUntilItGoesOn) {
    type(" ");
    pass([this] { fake_.accounts[2].usage = 300 * mib; });
    top();
    EXPECT_TRUE(has("PAUSED"));
    EXPECT_NE(line("vllm").find("240.0 MiB"), std::string::npos);
    type(" ");
    pass();
    type(" ");
    top();
    EXPECT_NE(line("vllm").find("300.0 MiB"), std::string::npos);
}

TEST_F(Top, TheModulesAbsenceIsShownAndItsReturn) {
    pass([this] { loaded_ = false, fake_.fail_with = ENOENT; });
    top();
    EXPECT_TRUE(has("the umacct kernel module is not loaded")) << screen_.text();
    EXPECT_FALSE(has("vllm"));
    loaded_ = true;
    fake_.fail_with.reset();
    pass([this] { loaded_ = false, fake_.fail_with = ENOENT; });
    type("jl-*pp ");
    pass([this] { loaded_ = true, fake_.fail_with.reset(); });
    type(" ");
    pass();
    top();
    EXPECT_TRUE(has("vllm")) << screen_.text();
    EXPECT_FALSE(has("not loaded"));
}

TEST_F(Top, ARemovedCgroupIsTold) {
    pass([this] { fake_.accounts.pop_back(); });
    top();
    EXPECT_EQ(bottom(), "cgroup removed: /demo/llama");
    EXPECT_FALSE(has(" llama"));
}

TEST_F(Top, WithoutTheModuleItNeverTakesTheScreen) {
    loaded_ = false;
    const Ran ran = top();
    EXPECT_EQ(ran.code, 3);
    EXPECT_TRUE(screen_.shown.empty());
}

TEST_F(Top, ItEndsAfterSoManyRefreshes) {
    for (int i = 0; i < 10; ++i)
        pass();
    EXPECT_EQ(top({"-n", "3"}).code, 0);
    EXPECT_EQ(screen_.shown.size(), 3U);
}

// --- what was before -------------------------------------------------------------

class TopWithHistory : public Top {
protected:
    TopWithHistory() { sandbox_.write("proc/sys/kernel/random/boot_id", "one\n"); }

    /// Records vllm's growth for that many seconds, up to that long ago. skip: a second without a
    /// sample.
    void record(int seconds, std::int64_t ago_ms, const char *boot = "one", int skip = -1) {
        const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count();
        // A second that is left out takes nine more.
        test::Story story(sandbox_, boot, now - ago_ms - (seconds + (skip < 0 ? 0 : 9)) * 1000LL);
        auto &holdings = story.account("/demo/vllm");

        story.sample.accounts.back().id = vllm_;
        for (int i = 0; i < seconds; ++i) {
            holdings[history::Holding::driver] += 6 * mib;
            if (i == skip) {
                story.sample.uptime_ms += 10'000;
                continue;
            }
            story.pass(1);
        }
    }

    /// How many refreshes its line has.
    std::ptrdiff_t length() {
        std::setlocale(LC_CTYPE, "C");
        screen_.size = {30, 220};
        screen_.steps.clear();
        top();
        const std::string text = line("vllm ");
        const std::size_t at = line("HISTORY").find("HISTORY");
        return std::ranges::count_if(text.substr(std::min(at, text.size())),
                                     [](char c) { return c != ' '; });
    }
};

TEST_F(TopWithHistory, ItsLinesBeginWithWhatWasRecorded) {
    record(40, 300);
    EXPECT_EQ(length(), 41);
    EXPECT_NE(line("vllm ").find("::--"), std::string::npos) << "a slope: " << line("vllm ");
}

TEST_F(TopWithHistory, WhatIsOfAnotherTimeIsLeftOut) {
    record(40, 20'000);
    EXPECT_EQ(length(), 1) << "nobody recorded it since";
    std::filesystem::remove_all(sandbox_.root() / history::folder);
    record(40, 300, "another");
    EXPECT_EQ(length(), 1) << "the machine was started since";
    std::filesystem::remove_all(sandbox_.root() / history::folder);
    record(40, 300, "one", 29);
    EXPECT_EQ(length(), 11) << "there was a gap";
    std::filesystem::remove_all(sandbox_.root() / history::folder);
    sandbox_.write(sandbox_.root() / history::folder / history::file_name, "no database");
    EXPECT_EQ(length(), 1) << "it can't be read";
}

TEST_F(TopWithHistory, ARefreshThatIsSlowerTakesFewerOfThem) {
    record(40, 300);
    screen_.size = {30, 200};
    std::setlocale(LC_CTYPE, "C");
    top({"-d", "4"});
    const std::string text = line("vllm ");
    const auto points = std::ranges::count_if(text.substr(line("HISTORY").find("HISTORY")),
                                              [](char c) { return c != ' '; });
    EXPECT_GE(points, 10);
    EXPECT_LE(points, 12);
}

// --- bars, and all about one -----------------------------------------------------

TEST(UsageBar, HasMarksWhereLimitsAre) {
    Account account;

    std::setlocale(LC_CTYPE, "C");
    account.usage = 4 * gib;
    EXPECT_EQ(tool::usage_bar(account, 16 * gib, 16), "####............");
    account.effective = 8 * gib;
    account.soft = 2 * gib;
    EXPECT_EQ(tool::usage_bar(account, 16 * gib, 16), "##:#....|.......");
    account.effective = 16 * gib;
    EXPECT_EQ(tool::usage_bar(account, 16 * gib, 16), "##:#...........|");
    account.effective = 17 * gib;
    account.usage = 20 * gib;
    EXPECT_EQ(tool::usage_bar(account, 16 * gib, 4), "#:##") << "a limit outside is none";
    EXPECT_EQ(tool::usage_bar(account, 0, 2), "..");
    EXPECT_EQ(tool::usage_bar(account, gib, 0), "");
}

TEST(HistoryLines, HaveTheLimitWhereItIs) {
    std::setlocale(LC_CTYPE, "C");
    EXPECT_EQ(tool::history_lines({0, 4, 8, 8}, 0, 5, 2),
              (std::vector<std::string>{"   ##", "  ###"}));
    EXPECT_EQ(tool::history_lines({4, 4}, 8, 3, 2), (std::vector<std::string>{"---", " ##"}));
    EXPECT_EQ(tool::history_lines({1}, 1000, 2, 1), (std::vector<std::string>{" #"}))
        << "one that is far away";
    EXPECT_EQ(tool::history_lines({}, 0, 1, 1), (std::vector<std::string>{" "}));
}

TEST_F(Top, AWideScreenHasBarsWithLimits) {
    fake_.accounts[2].hard = fake_.accounts[2].effective = 8 * gib;
    std::setlocale(LC_CTYPE, "C");
    screen_.size = {20, 200};
    top();
    EXPECT_TRUE(has("OF ALL"));
    EXPECT_NE(line("vllm").find("........|......."), std::string::npos) << screen_.text();
}

TEST_F(Top, EnterShowsAllAboutOneAndEscGoesBack) {
    fake_.accounts[2].soft = 200 * mib;
    fake_.accounts[2].soft_count = 3;
    fake_.accounts[2].hard = fake_.accounts[2].effective = 1024 * mib;
    fake_.accounts[2].effective_id = vllm_;
    fake_.accounts[2].hard_count = 7;
    press(Key::end);
    press(Key::up);
    press(Key::enter);
    screen_.size = {40, 100};
    top();
    EXPECT_TRUE(has("/demo/vllm"));
    EXPECT_TRUE(has("total 240.1 MiB, 1.47% of all")) << screen_.text();
    EXPECT_TRUE(has("hard limit 1.00 GiB, refused 7 times"));
    EXPECT_TRUE(has("soft limit 200.0 MiB, crossed 3 times"));
    EXPECT_TRUE(has("memory.current 132.0 KiB"));
    EXPECT_TRUE(has("HISTORY of usage, up to 240.0 MiB"));
    EXPECT_TRUE(has("41  240.0 MiB  vllm")) << screen_.text();
    EXPECT_FALSE(has("llama"));
    EXPECT_TRUE(bottom().starts_with("Esc back"));

    press(Key::end);
    press(Key::up);
    press(Key::enter);
    press(Key::down);
    pass([this] { fake_.accounts[3].usage = 100 * mib; });
    top();
    EXPECT_TRUE(has("/demo/llama")) << "another row";
    EXPECT_TRUE(has("usage 100.0 MiB")) << "as it is now";

    press(Key::end);
    press(Key::up);
    press(Key::enter);
    press(Key::escape);
    top();
    EXPECT_TRUE(has("ACCOUNT"));
    EXPECT_TRUE(has("llama"));
}

TEST_F(Top, WhatIsAskedThereGoesBackThere) {
    for (const char *keys : {"l\x1b", "fn", "h\x1b"}) {
        press(Key::end);
        press(Key::up);
        press(Key::enter);
        type(keys);
        top();
        EXPECT_TRUE(has("total 240.1 MiB, ")) << keys << screen_.text();
    }
}

TEST_F(Top, AllAboutOneIsDrawnOnAnyScreenAndOfAProcessItIsItsCgroup) {
    fake_.accounts[2].path = "/demo/<i>\x1b[31m" + std::string(300, 'x');
    for (int columns = 1; columns <= 150; columns += columns < 10 ? 1 : 19) {
        for (int rows = 1; rows <= 40; rows += rows < 8 ? 1 : 4) {
            screen_ = FakeScreen{.size = {rows, columns}};
            press(Key::end);
            press(Key::up);
            press(Key::enter);
            ASSERT_EQ(top().code, 0);
            ASSERT_EQ(screen_.text().find('\x1b'), std::string::npos);
        }
    }
    screen_ = FakeScreen{.size = {30, 100}};
    press(Key::enter);
    top({"-P"});
    EXPECT_TRUE(has("total 240.0 MiB, ")) << screen_.text();
    EXPECT_TRUE(has("PROCESS"));
}

TEST_F(Top, OfOneThatIsGoneNothingIsShown) {
    press(Key::end);
    press(Key::enter);
    pass([this] { fake_.accounts.resize(1), fake_.accounts[0].usage = 0; });
    top();
    EXPECT_TRUE(bottom().starts_with("cgroup removed: /demo")) << screen_.text();
    EXPECT_FALSE(has("/demo/llama  ")) << screen_.text();
}

// --- keys -----------------------------------------------------------------------

TEST_F(Top, QuitsOnQ) {
    type("qx");
    top();
    EXPECT_EQ(screen_.steps.size(), 1U);
}

TEST_F(Top, SetsAHardLimitAfterAskingTwice) {
    press(Key::end);
    press(Key::up);
    type("l");
    top();
    EXPECT_EQ(bottom(), "hard limit of /demo/vllm (now max): _");
    press(Key::end);
    press(Key::up);
    type("l1,");
    press(Key::backspace);
    type("G");
    press(Key::enter);
    top();
    EXPECT_EQ(bottom(), "set the hard limit of /demo/vllm to 1.00 GiB? y/n");
    EXPECT_TRUE(fake_.changes.empty());
    press(Key::end);
    press(Key::up);
    type("l1G");
    press(Key::enter);
    type("y");
    fake_.on_change = [this] { fake_.accounts[2].hard = 1024 * mib; };
    top();
    EXPECT_EQ(bottom(), "/demo/vllm: hard limit max -> 1.00 GiB");
    ASSERT_EQ(fake_.changes.size(), 1U);

    const Payload &change = fake_.changes[0].attributes;
    EXPECT_EQ(test::attribute(change, UMACCT_A_ACCOUNT_ID), vllm_);
    EXPECT_EQ(test::attribute(change, UMACCT_A_ACCOUNT_HARD), 1024 * mib);
}

/// The question before had it, too: a container's name may be another's.
TEST_F(Top, TellsAContainersPathWithItsNewLimit) {
    const std::string path = "/system.slice/docker-" + std::string(64, 'a') + ".scope";

    fake_.accounts[2].path = path;
    fake_.accounts[2].id = sandbox_.add_cgroup(path);
    fake_.on_change = [this] { fake_.accounts[2].hard = 1024 * mib; };
    screen_.size = {24, 160};
    press(Key::end);
    press(Key::up);
    type("l1G");
    press(Key::enter);
    type("y");
    top();
    EXPECT_EQ(bottom(), "docker aaaaaaaaaaaa (" + path + "): hard limit max -> 1.00 GiB");
}

TEST_F(Top, TakesALimitAway) {
    type("lmax");
    press(Key::enter);
    type("Y");
    top();
    EXPECT_EQ(bottom(), "/: hard limit max, as it was");
    ASSERT_EQ(fake_.changes.size(), 1U);
    fake_.accounts[0].hard = 1024 * mib;
    fake_.on_change = [this] { fake_.accounts[0].hard.reset(); };
    type("lmax");
    press(Key::enter);
    type("Y");
    top();
    EXPECT_EQ(bottom(), "/: hard limit 1.00 GiB -> max");
}

TEST_F(Top, SaysWhenNothingEnforcesTheLimit) {
    fake_.enforcement = {UMACCT_DRIVER_UNKNOWN, "version 999.1 is \x1bnewer than this module"};
    fake_.on_change = [this] { fake_.accounts[0].hard = 1024 * mib; };
    type("l1G");
    press(Key::enter);
    type("y");
    pass();
    top();
    EXPECT_EQ(bottom(), "not enforced: version 999.1 is ?newer than this module; /: hard "
                        "limit max -> 1.00 GiB");
    EXPECT_EQ(tone_of("not enforced"), Tone::refused);

    fake_.enforcement = {UMACCT_DRIVER_ABSENT, "the driver is not loaded: this holds from ..."};
    type("l1G");
    press(Key::enter);
    type("y");
    top();
    EXPECT_EQ(bottom(),
              "/: hard limit 1.00 GiB, as it was; it takes effect once the driver is loaded");
}

TEST_F(Top, SaysThatWhatIsHeldStays) {
    screen_.size = {24, 140};
    type("l1M");
    press(Key::enter);
    top();
    EXPECT_NE(bottom().find("It holds more: that stays, new allocations are refused. y/n"),
              std::string::npos);
}

TEST_F(Top, ChangesNothingUnlessConfirmed) {
    type("l1G");
    press(Key::enter);
    type("n");
    top();
    EXPECT_EQ(bottom(), "nothing was changed");
    type("l1G");
    press(Key::escape);
    top();
    type("l");
    press(Key::enter);
    top();
    EXPECT_EQ(bottom(), "nothing was changed");
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(Top, ABadSizeIsSaidAndCanBeCorrected) {
    type("l4x");
    press(Key::enter);
    top();
    EXPECT_TRUE(has("'4x' is not a size: write a size as 40G"));
    EXPECT_EQ(bottom(), "hard limit of the whole machine, /, (now max): 4x_");
    EXPECT_EQ(tone_of("'4x' is not"), Tone::refused);
    type("l4x");
    press(Key::enter);
    press(Key{0x15}); // Ctrl-U
    type("4G");
    press(Key::enter);
    top();
    EXPECT_EQ(bottom(), "set the hard limit of the whole machine, /, to 4.00 GiB? y/n");
}

TEST_F(Top, TheModulesRefusalIsShown) {
    fake_.refuse_with = EPERM;
    type("l1G");
    press(Key::enter);
    type("y");
    pass();
    top();
    EXPECT_TRUE(bottom().starts_with("cannot set hard of /: permission denied: the fake module "
                                     "refuses: run as root on the host "));
    EXPECT_EQ(tone_of("/: permission"), Tone::refused);
}

TEST_F(Top, AProcessesLimitIsThatOfItsCgroup) {
    type("pl");
    top();
    EXPECT_EQ(bottom(), "hard limit of /demo/vllm (now max): _");
    type("p/nothing");
    press(Key::enter);
    type("l");
    top();
    EXPECT_EQ(bottom(), "there is no cgroup to limit, freeze or kill");
}

TEST_F(Top, FiltersWhileOneTypes) {
    type("/LLA");
    top();
    EXPECT_EQ(bottom(), "filter: LLA_  (Enter keeps it, Esc clears it)");
    EXPECT_TRUE(has("llama"));
    EXPECT_FALSE(has("vllm"));
    type("/llax\xc3\xa9"); // two bytes, and one character
    press(Key::backspace);
    press(Key::backspace);
    press(Key::enter);
    top();
    EXPECT_TRUE(has("filter: lla   by total"));
    type("/lla");
    press(Key::enter);
    press(Key::escape);
    top();
    EXPECT_TRUE(has("vllm"));
    type("/zz");
    press(Key::enter);
    top();
    EXPECT_TRUE(has("no name contains the filter's text"));
}

TEST_F(Top, SortsAndReverses) {
    screen_.size = {24, 120};
    type("sn");
    top();
    EXPECT_TRUE(has("by name"));
    EXPECT_LT(screen_.text().find(" llama"), screen_.text().find(" vllm"));
    type("snsn");
    top();
    EXPECT_TRUE(has("by name, reversed"));
    EXPECT_GT(screen_.text().find(" llama"), screen_.text().find(" vllm"));
    type("r");
    top();
    EXPECT_TRUE(has("by total, reversed"));
    type("s");
    top();
    EXPECT_EQ(bottom(), "sort by  n name  u usage  p peak  c uncharged  l limit  "
                        "t total  r rate  m memory.current  w pressure");
}

TEST_F(Top, FoldsAndUnfolds) {
    press(Key::down);
    press(Key::left);
    top();
    EXPECT_TRUE(has("\u25B8 demo")) << screen_.text();
    EXPECT_FALSE(has("vllm"));
    press(Key::down);
    press(Key::left);
    press(Key::right);
    top();
    EXPECT_TRUE(has("vllm"));
    press(Key::down);
    press(Key::left);
    type("-"); // nothing to fold: to the root
    type("-");
    top();
    EXPECT_FALSE(has("demo"));
    type("+*jjj-");
    top();
    EXPECT_TRUE(has("vllm"));
}

TEST_F(Top, ShowsIdleAccountsWhenAsked) {
    add("/idle", 99, 1, 0);
    top();
    EXPECT_FALSE(has("idle"));
    type("a");
    top();
    EXPECT_TRUE(has(" idle "));
    top({"-a"});
    EXPECT_TRUE(has(" idle "));
}

TEST_F(Top, TheListScrolls) {
    for (std::uint32_t pid = 100; pid < 200; ++pid)
        add_client(pid, "worker", llama_, "/demo/llama", mib);
    type("p");
    press(Key::end);
    top();
    EXPECT_TRUE(has(" 199 worker")) << screen_.text();
    EXPECT_FALSE(has(" 41 vllm"));
    type("p");
    press(Key::page_down);
    press(Key::page_down);
    press(Key::page_up);
    press(Key::home);
    press(Key::page_down);
    press(Key::home);
    top();
    EXPECT_TRUE(has(" 41 vllm")) << screen_.text();
}

TEST_F(Top, HelpExplainsAndGoes) {
    type("h");
    top();
    for (const char *name : {"usage", "limit", "percent", "peak", "uncharged", "pressure"})
        EXPECT_TRUE(has(tool::column(name, tool::Of::accounts, "").help))
            << "a column is explained as it is in lists: " << name;
    EXPECT_FALSE(has("vllm"));
    type("?");
    press(Key::down);
    top();
    EXPECT_EQ(line_of(screen_.last(), 0).rfind("  up down", 0), 0U);
    type("hx");
    top();
    EXPECT_TRUE(has("vllm"));
}

TEST_F(Top, KeysThatMeanNothingDoNothing) {
    type("ZX~#\x01\x7f");
    press(Key{KEY_F(1)});
    press(Key::resize);
    press(Key::backspace);
    EXPECT_EQ(top().code, 0);
    EXPECT_TRUE(has("vllm"));
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(Top, AQuestionIsNeverCut) {
    const std::string deep = "/demo/" + std::string(150, 'x');

    fake_.accounts[2].path = deep;
    fake_.accounts[2].id = sandbox_.add_cgroup(deep);
    screen_.size = {24, 80};
    press(Key::end);
    press(Key::up);
    type("l1M");
    press(Key::enter);
    top();

    std::string asked;
    for (int row = 20; row < 24; ++row)
        asked += line_of(screen_.last(), row);
    EXPECT_NE(asked.find("set the hard limit of /demo/xxx"), std::string::npos) << asked;
    EXPECT_NE(asked.find("xxx to 1.00 MiB?"), std::string::npos) << asked;
    EXPECT_NE(asked.find("new allocations are refused. y/n"), std::string::npos) << asked;
}

TEST_F(Top, FreezesAndLetsGoOnAfterAsking) {
    const auto freezer = sandbox_.cgroup_mount() / "demo/vllm/cgroup.freeze";
    const auto state = [&] {
        std::string text;

        std::getline(std::ifstream(freezer), text);
        return text;
    };
    const auto answer = [&](std::string_view keys) {
        press(Key::end);
        press(Key::up);
        type(keys);
        top();
    };

    sandbox_.write(freezer, "0");
    answer("f");
    EXPECT_EQ(bottom(), "freeze /demo/vllm and all below it? y/n");
    answer("fn");
    EXPECT_EQ(state(), "0");
    answer("fy");
    EXPECT_EQ(bottom(), "/demo/vllm is frozen");
    EXPECT_EQ(state(), "1");
    answer("f");
    EXPECT_EQ(bottom(), "let /demo/vllm go on? y/n");
    answer("fy");
    EXPECT_EQ(state(), "0");
}

TEST_F(Top, KillsAfterAskingButNotWhatItRunsIn) {
    const auto killer = sandbox_.cgroup_mount() / "demo/vllm/cgroup.kill";
    const auto answer = [&](std::string_view keys) {
        press(Key::end);
        press(Key::up);
        type(keys);
        top();
    };

    sandbox_.write(killer, "");
    answer("K");
    EXPECT_EQ(bottom(),
              "KILL every process of /demo/vllm and below it, which holds 240.00 MiB? y/n");
    answer("Kx");
    EXPECT_EQ(std::filesystem::file_size(killer), 0U);
    answer("Ky");
    EXPECT_EQ(bottom(), "/demo/vllm is killed");
    EXPECT_EQ(std::filesystem::file_size(killer), 1U);

    sandbox_.write(killer, "");
    sandbox_.write("proc/" + std::to_string(getpid()) + "/cgroup", "0::/demo/vllm/shell\n");
    answer("Ky");
    EXPECT_NE(bottom().find("has this very program in it"), std::string::npos) << bottom();
    sandbox_.write("proc/" + std::to_string(getpid()) + "/cgroup", "0::/\n");
    fake_.accounts[2].id += 1000;
    answer("Ky");
    EXPECT_EQ(bottom(), "/demo/vllm is gone") << "another cgroup has the name by now";
    EXPECT_EQ(std::filesystem::file_size(killer), 0U);
    type("fy");
    top();
    EXPECT_NE(bottom().find("the whole machine, /, has this very program"), std::string::npos);
}

// --- without a screen -------------------------------------------------------------

TEST_F(Top, InAPipeItPrintsOneBatch) {
    fake_.accounts.erase(fake_.accounts.begin()); // a subtree ends at its top

    const Ran ran = run({"top", "/demo"});

    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ("\n" + ran.out, R"(
memory  2.00 GiB available of 16.00 GiB, reserve off
driver  336.00 MiB uncharged, 0 B charged, 0 B its own

ACCOUNT       TOTAL       USAGE  LIMIT  MEM %        PEAK  RATE  MEMORY.CURRENT   UNCHARGED  PRESSURE
/demo    336.00 MiB  336.00 MiB    max      -  336.00 MiB     -               -  336.00 MiB         -
  vllm   240.13 MiB  240.00 MiB    max      -  240.00 MiB     -      132.00 KiB  240.00 MiB         -
  llama   96.00 MiB   96.00 MiB    max      -   96.00 MiB     -               -   96.00 MiB         -
)");
}

TEST_F(Top, BatchesHaveRatesFromTheSecondOn) {
    const Ran ran = run({"top", "-b", "-n", "2", "-d", "0.1", "-P"});

    EXPECT_NE(ran.out.find("\n\nmemory"), std::string::npos);
    EXPECT_LT(ran.out.find("  -  "), ran.out.find("0 B/s"));
    EXPECT_NE(ran.out.find(" 41  240.00 MiB  240.00 MiB    max      -  240.00 MiB"),
              std::string::npos)
        << ran.out;
}

TEST_F(Top, ABatchSaysOnceThatTheModuleIsGoneAndGoesOn) {
    const std::string note = "note: the fake module goes; trying again\n";

    fake_.goes_after = 2; // accounts and processes
    const Ran ran = run({"top", "-b", "-n", "3", "-d", "0.1"});

    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.err, note);
    EXPECT_EQ(ran.out.find("memory"), ran.out.rfind("memory  "));
}

TEST_F(Top, JsonIsALineForEachRefreshWithTheKeysOfLsAndPs) {
    const Ran ran = run({"top", "--json", "-n", "2", "-d", "0.1"});
    std::istringstream lines(ran.out);
    std::string line;
    json document;
    int count = 0;

    while (std::getline(lines, line)) {
        document = json::parse(line);
        ASSERT_EQ(document["accounts"].size(), 4U);
        EXPECT_EQ(document["accounts"][2]["rate_bytes_per_second"],
                  count == 0 ? json(nullptr) : json(0));
        ++count;
    }
    EXPECT_EQ(count, 2);
    EXPECT_EQ(document["schema"], 1);
    EXPECT_EQ(document["uncharged_bytes"], 336 * mib);
    EXPECT_EQ(document["memory"]["total_bytes"], 16384 * mib);

    json account = document["accounts"][2];
    account.erase("rate_bytes_per_second");
    // Exiting processes are not looked for each second.
    json listed = run_json({"ls", "--json"})["accounts"][2];
    listed.erase("exiting"); // processes have it in their own rows
    EXPECT_EQ(account, listed);

    json client = run_json({"top", "-j", "-P", "-n", "1"})["clients"][0];
    client.erase("rate_bytes_per_second");
    EXPECT_EQ(client, run_json({"ps", "--json"})["clients"][0]);
}

TEST_F(Top, NothingToShowIsSaid) {
    fake_.accounts.clear();
    fake_.clients.clear();
    EXPECT_NE(run({"top"}).out.find("no account holds memory"), std::string::npos);
    EXPECT_NE(run({"top", "-P"}).out.find("no process holds memory"), std::string::npos);
    top();
    EXPECT_TRUE(has("no account holds memory or has settings; a shows the rest"));
    type("a");
    top();
    EXPECT_TRUE(has("there is no account"));
}

TEST_F(Top, AWrongCommandLineIsRefused) {
    const std::vector<std::pair<std::vector<const char *>, int>> wrong{
        {{"top", "-d", "0"}, 2},    {{"top", "-d", "-1"}, 2},     {{"top", "-d", "nan"}, 2},
        {{"top", "-d", "soon"}, 2}, {{"top", "-d", "1e9"}, 2},    {{"top", "-d", ""}, 2},
        {{"top", "-n", "-1"}, 2},   {{"top", "-n", "many"}, 2},   {{"top", "--sort", "colour"}, 2},
        {{"top", "/demo", "x"}, 2}, {{"top", "nowhere"}, 1},      {{"top", ""}, 2},
        {{"top", "--frob"}, 2},     {{"top", "-o", "colour"}, 2}, {{"top", "-n", "1.5"}, 2}};

    for (const auto &[words, code] : wrong) {
        const Ran ran = run(words);

        EXPECT_EQ(ran.code, code) << words[1] << ' ' << words.back();
        EXPECT_EQ(ran.out, "");
        EXPECT_NE(ran.err.find("\nhint: "), std::string::npos) << ran.err;
    }
}

TEST_F(Top, AWrongColumnIsAnErrorAtOnceWhereverItWouldBeShown) {
    for (const auto &words :
         std::vector<std::vector<const char *>>{{"top", "--json", "-n", "1", "-o", "colour"},
                                                {"top", "--json", "-n", "1", "-o", "+pid"},
                                                {"top", "-b", "-n", "1", "-P", "-o", "hard"}}) {
        const Ran ran = run(words);

        EXPECT_EQ(ran.code, 2) << words.back();
        EXPECT_EQ(ran.out, "");
        EXPECT_NE(ran.err.find("-o: there is no column"), std::string::npos) << ran.err;
    }
    const Ran ran = top({"-o", "colour"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("-o: there is no column 'colour'"), std::string::npos) << ran.err;
    EXPECT_TRUE(screen_.shown.empty());
}

TEST_F(Top, TheScreenHasColumnsOfItsOwn) {
    for (const auto &words : std::vector<std::vector<const char *>>{
             {"-o", "usage"}, {"--no-header"}, {"--bytes"}, {"--csv"}}) {
        const Ran ran = top(words);

        EXPECT_EQ(ran.code, 2) << words[0];
        EXPECT_NE(ran.err.find("not possible on the screen"), std::string::npos) << ran.err;
        EXPECT_NE(ran.err.find("\nhint: "), std::string::npos) << ran.err;
        EXPECT_TRUE(screen_.shown.empty());
    }
    EXPECT_EQ(top({"-b", "-n", "1", "--no-header", "-o", "name,usage", "/demo/vllm"}).code, 0);
}

} // namespace
} // namespace umacct
