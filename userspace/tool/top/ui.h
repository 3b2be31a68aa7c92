// SPDX-License-Identifier: GPL-2.0-or-later
/// The keys of "top", and its screen.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "tool/top/grid.h"
#include "tool/top/model.h"
#include "tool/top/terminal.h"

namespace umacct::tool {

struct Session;

class TopUi {
public:
    /// A key's request to the caller.
    enum class Wish { nothing, refresh, quit };

    /// model and session must outlive it. target: the only subtree that is shown; empty
    /// for all.
    TopUi(TopModel &model, Session &session, std::string target, std::chrono::milliseconds delay)
        : model_(model), session_(session), target_(std::move(target)), delay_(delay) {}

    Wish press(Key key);

    /// Shows the notices of the model's newest reading.
    void refreshed();

    bool paused() const { return paused_; }

    Grid draw(Size size);

private:
    enum class Mode { list, help, sort, filter, limit, confirm, detail };

    struct Message {
        std::string text;
        Tone tone = Tone::plain;
        bool notice = false; ///< shown without a key
    };

    void press_in_list(Key key);
    void press_in_help(Key key);
    void press_in_sort(Key key);
    void press_in_filter(Key key);
    void press_in_limit(Key key);
    void press_in_confirm(Key key);
    void press_in_detail(Key key);
    void open_detail();
    void move(long rows);
    void fold(bool folded);
    const Account *chosen_account();
    void ask_limit();
    void ask_freeze();
    void ask_kill();
    /// Asks a question; y calls the function.
    void ask(std::string question, void (TopUi::*yes)());
    void set_limit();
    void freeze();
    void kill_all();
    void write_to_cgroup(const char *file, const char *text, const std::string &done);
    /// Returns the name for people, with the path if that is something else.
    std::string named(const Account &account) const;
    bool edit(Key key);

    void draw_title(Grid &grid) const;
    bool draw_chosen(Grid &grid, int row, int height);
    void draw_body(Grid &grid, int row, int height);
    void draw_bottom(Grid &grid) const;
    Message bottom_line() const;

    TopModel &model_;
    Session &session_;
    std::string target_;
    std::chrono::milliseconds delay_;
    Mode mode_ = Mode::list;
    Mode base_ = Mode::list;    ///< the list, or the detail of its chosen row
    Wish wish_ = Wish::nothing; ///< request of the current key
    bool paused_ = false;
    Message message_;
    std::string input_;
    Account chosen_;          ///< account of a pending question
    std::uint64_t bytes_ = 0; ///< the limit to confirm
    bool thaws_ = false;      ///< it is frozen now
    std::string question_;
    void (TopUi::*yes_)() = nullptr;
    int help_line_ = 0;
    std::size_t first_ = 0; ///< row at the top of the list
    int page_ = 1;          ///< rows that the list had room for
};

} // namespace umacct::tool
