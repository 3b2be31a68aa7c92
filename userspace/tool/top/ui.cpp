// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/ui.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/top/detail.h"
#include "tool/top/draw.h"

namespace umacct::tool {

namespace {

constexpr std::size_t input_most = 200;
constexpr Key control_u{0x15};
constexpr long every_row = INT32_MAX;

void drop_character(std::string &text) {
    while (!text.empty()) {
        const bool begins = (static_cast<unsigned char>(text.back()) & 0xC0U) != 0x80U;

        text.pop_back();
        if (begins)
            break;
    }
}

std::string described(const Error &error) {
    return error.hint().empty() ? std::string(error.what())
                                : fmt::format("{}: {}", error.what(), error.hint());
}

} // namespace

void TopUi::refreshed() {
    if (model_.notices().empty())
        return;

    // An error that answers the user stays until the next key.
    const bool keep = !message_.notice && message_.tone == Tone::refused;
    std::string text = keep ? message_.text : "";
    bool refusal = keep;
    for (const TopNotice &notice : model_.notices()) {
        text += (text.empty() ? "" : "; ") + notice.text;
        refusal = refusal || notice.refusal;
    }
    message_ = {text, refusal ? Tone::refused : Tone::strong, !keep};
}

// --- keys -----------------------------------------------------------------------

TopUi::Wish TopUi::press(Key key) {
    // Handlers in the order of Mode.
    static constexpr std::array presses{&TopUi::press_in_list,  &TopUi::press_in_help,
                                        &TopUi::press_in_sort,  &TopUi::press_in_filter,
                                        &TopUi::press_in_limit, &TopUi::press_in_confirm,
                                        &TopUi::press_in_detail};

    if (key == Key::stop)
        return Wish::quit;
    if (key == Key::resize)
        return Wish::nothing;
    message_ = {};
    wish_ = Wish::nothing;
    (this->*presses.at(static_cast<std::size_t>(mode_)))(key);
    return wish_;
}

void TopUi::press_in_list(Key key) {
    struct Binding {
        Key key;
        std::string_view characters; ///< keys that do the same
        void (*act)(TopUi &ui);
    };

    static constexpr std::array bindings{
        Binding{Key::up, "k", [](TopUi &ui) { ui.move(-1); }},
        Binding{Key::down, "j", [](TopUi &ui) { ui.move(1); }},
        Binding{Key::page_up, "", [](TopUi &ui) { ui.move(-ui.page_); }},
        Binding{Key::page_down, "", [](TopUi &ui) { ui.move(ui.page_); }},
        Binding{Key::home, "", [](TopUi &ui) { ui.move(-every_row); }},
        Binding{Key::end, "", [](TopUi &ui) { ui.move(every_row); }},
        Binding{Key::left, "-", [](TopUi &ui) { ui.fold(true); }},
        Binding{Key::right, "+", [](TopUi &ui) { ui.fold(false); }},
        Binding{Key::enter, "", [](TopUi &ui) { ui.open_detail(); }},
        Binding{Key::escape, "", [](TopUi &ui) { ui.model_.filter.clear(); }},
        Binding{Key{'*'}, "", [](TopUi &ui) { ui.model_.unfold_all(); }},
        Binding{Key{'a'}, "", [](TopUi &ui) { ui.model_.all = !ui.model_.all; }},
        Binding{Key{'b'}, "", [](TopUi &ui) { ui.model_.kinds = !ui.model_.kinds; }},
        Binding{Key{'s'}, "", [](TopUi &ui) { ui.mode_ = Mode::sort; }},
        Binding{Key{'r'}, "", [](TopUi &ui) { ui.model_.reversed = !ui.model_.reversed; }},
        Binding{Key{'l'}, "", [](TopUi &ui) { ui.ask_limit(); }},
        Binding{Key{'f'}, "", [](TopUi &ui) { ui.ask_freeze(); }},
        Binding{Key{'K'}, "", [](TopUi &ui) { ui.ask_kill(); }},
        Binding{Key{'q'}, "", [](TopUi &ui) { ui.wish_ = Wish::quit; }},
        Binding{Key{'h'}, "?",
                [](TopUi &ui) {
                    ui.mode_ = Mode::help;
                    ui.help_line_ = 0;
                }},
        Binding{Key{'p'}, "",
                [](TopUi &ui) {
                    ui.model_.processes = !ui.model_.processes;
                    ui.first_ = 0;
                }},
        Binding{Key{'/'}, "",
                [](TopUi &ui) {
                    ui.mode_ = Mode::filter;
                    ui.input_ = ui.model_.filter;
                }},
        Binding{Key{' '}, "",
                [](TopUi &ui) {
                    ui.paused_ = !ui.paused_;
                    ui.wish_ = ui.paused_ ? Wish::nothing : Wish::refresh;
                }},
    };
    const auto *const bound = std::ranges::find_if(bindings, [&](const Binding &each) {
        return key == each.key ||
               std::ranges::any_of(each.characters, [&](char c) { return key == Key{c}; });
    });

    if (bound != bindings.end())
        bound->act(*this);
}

void TopUi::press_in_detail(Key key) {
    // Those that change what the list has would do so unseen.
    static constexpr std::array passed{Key::up,  Key::down, Key{'k'}, Key{'j'}, Key{'l'}, Key{'f'},
                                       Key{'K'}, Key{'h'},  Key{'?'}, Key{' '}, Key{'q'}};

    if (key == Key::escape || key == Key::enter || key == Key::left)
        base_ = mode_ = Mode::list;
    else if (std::ranges::find(passed, key) != passed.end())
        press_in_list(key);
}

void TopUi::press_in_help(Key key) {
    if (key == Key::down || key == Key{'j'})
        help_line_ = std::min(help_line_ + 1, help_lines() - 1);
    else if (key == Key::up || key == Key{'k'})
        help_line_ = std::max(help_line_ - 1, 0);
    else
        mode_ = base_;
}

void TopUi::press_in_sort(Key key) {
    mode_ = Mode::list;
    for (const Column &each : columns()) {
        if (each.key == 0 || key != Key{each.key})
            continue;
        model_.reversed = model_.sort == &each && !model_.reversed;
        model_.sort = &each;
    }
}

void TopUi::press_in_filter(Key key) {
    if (key == Key::escape)
        model_.filter.clear();
    else if (edit(key))
        model_.filter = input_;
    if (key == Key::escape || key == Key::enter)
        mode_ = Mode::list;
}

void TopUi::press_in_limit(Key key) {
    if (key != Key::enter && key != Key::escape) {
        edit(key);
    } else if (key == Key::escape || input_.empty()) {
        mode_ = base_;
        message_ = {"nothing was changed"};
    } else {
        try {
            bytes_ = input_.ends_with('%') ? parse_machine_size(input_, session_.machine)
                                           : parse_limit(input_);
            const bool above = bytes_ != UMACCT_UNLIMITED && chosen_.usage > bytes_;

            ask(fmt::format("set the hard limit of {} to {}?{}", named(chosen_),
                            bytes_ == UMACCT_UNLIMITED ? "max" : format_size(bytes_),
                            above ? " It holds more: that stays, new allocations are refused."
                                  : ""),
                &TopUi::set_limit);
        } catch (const Error &error) {
            message_ = {described(error), Tone::refused};
        }
    }
}

void TopUi::press_in_confirm(Key key) {
    mode_ = base_;
    if (key == Key{'y'} || key == Key{'Y'})
        (this->*yes_)();
    else
        message_ = {"nothing was changed"};
}

/// Whether the key changed the input.
bool TopUi::edit(Key key) {
    const auto byte = static_cast<int>(key);

    if (key == Key::backspace)
        drop_character(input_);
    else if (key == control_u)
        input_.clear();
    else if (byte >= ' ' && byte <= UINT8_MAX && input_.size() < input_most)
        input_ += static_cast<char>(byte);
    else
        return false;
    return true;
}

void TopUi::move(long rows) {
    const std::vector<TopRow> all = model_.rows();

    if (all.empty())
        return;
    const auto to = std::clamp(static_cast<long>(model_.selected(all)) + rows, 0L,
                               static_cast<long>(all.size()) - 1);
    model_.select(all[static_cast<std::size_t>(to)]);
}

void TopUi::fold(bool folded) {
    const std::vector<TopRow> rows = model_.rows();

    if (rows.empty() || model_.processes)
        return;

    const std::size_t at = model_.selected(rows);
    const TopRow &row = rows[at];
    if (row.parent && row.open == folded) {
        if (folded)
            model_.fold(row.key.account);
        else
            model_.unfold(row.key.account);
    } else if (folded) { // there is nothing to fold: to what it is below
        for (std::size_t i = at; i-- > 0;) {
            if (rows[i].depth < row.depth) {
                model_.select(rows[i]);
                break;
            }
        }
    }
}

void TopUi::open_detail() {
    if (!model_.rows().empty())
        base_ = mode_ = Mode::detail;
}

/// Null where there is no row, or it was removed meanwhile.
const Account *TopUi::chosen_account() {
    const std::vector<TopRow> rows = model_.rows();
    const Account *account =
        rows.empty() ? nullptr : model_.account(rows[model_.selected(rows)].key.account);

    if (account == nullptr)
        message_ = {"there is no cgroup to limit, freeze or kill"};
    return account;
}

std::string TopUi::named(const Account &account) const {
    return account.path == "/" ? "the whole machine, /," : model_.named(account.path);
}

void TopUi::ask(std::string question, void (TopUi::*yes)()) {
    question_ = std::move(question);
    yes_ = yes;
    mode_ = Mode::confirm;
}

void TopUi::ask_limit() {
    if (const Account *account = chosen_account()) {
        chosen_ = *account;
        input_.clear();
        mode_ = Mode::limit;
    }
}

void TopUi::ask_freeze() {
    const Account *account = chosen_account();
    const Cgroups &cgroups = session_.machine.cgroups();

    if (account == nullptr)
        return;
    chosen_ = *account;
    thaws_ = cgroups.read(chosen_.path, "cgroup.freeze") == "1";
    ask(thaws_ ? fmt::format("let {} go on?", named(chosen_))
               : fmt::format("freeze {} and all below it?", named(chosen_)),
        &TopUi::freeze);
}

void TopUi::ask_kill() {
    if (const Account *account = chosen_account()) {
        chosen_ = *account;
        ask(fmt::format("KILL every process of {} and below it, which holds {}?", named(chosen_),
                        format_size(chosen_.usage)),
            &TopUi::kill_all);
    }
}

void TopUi::freeze() {
    write_to_cgroup("cgroup.freeze", thaws_ ? "0" : "1", thaws_ ? "goes on" : "is frozen");
}

void TopUi::kill_all() {
    write_to_cgroup("cgroup.kill", "1", "is killed");
}

void TopUi::write_to_cgroup(const char *file, const char *text, const std::string &done) {
    const Cgroups &cgroups = session_.machine.cgroups();
    const std::string self = cgroups.of_self();

    try {
        if (self == chosen_.path || chosen_.path == "/" || self.starts_with(chosen_.path + "/"))
            throw Error(Failure::usage, named(chosen_) + " has this very program in it",
                        "nothing was changed");
        // Another one may have the name by now.
        if (!cgroups.exists(chosen_.path) || cgroups.id(chosen_.path) != chosen_.id)
            throw Error(Failure::failed, named(chosen_) + " is gone");
        cgroups.write(chosen_.path, file, text);
        message_ = {fmt::format("{} {}", named(chosen_), done)};
        wish_ = Wish::refresh;
    } catch (const Error &error) {
        message_ = {described(error), Tone::refused};
    }
}

void TopUi::set_limit() {
    const std::string name = model_.named(chosen_.path);
    PersonChange change;

    change.asked.hard = bytes_;
    try {
        Module &module = session_.module();
        const Carried carried =
            carry_out(session_, {.path = chosen_.path, .id = chosen_.id, .pid = {}}, change);
        const Enforcement &made = carried.made;
        const auto now = module.account(chosen_.id);
        const std::string before =
            format_limit(*carried.before.hard == UMACCT_UNLIMITED ? Limit() : carried.before.hard);
        const std::string said =
            change_text(name + ": hard limit", before, format_limit(now ? now->hard : Limit()));

        // The warning comes first: a screen may cut off the end.
        if (is_unenforced(made))
            message_ = {fmt::format("not enforced: {}; {}", printable(made.reason), said),
                        Tone::refused};
        else if (made.driver_state == UMACCT_DRIVER_ABSENT)
            message_ = {said + "; it takes effect once the driver is loaded"};
        else
            message_ = {said};
        wish_ = Wish::refresh;
    } catch (const Error &error) {
        message_ = {described(error), Tone::refused};
    }
}

// --- the screen -----------------------------------------------------------------

Grid TopUi::draw(Size size) {
    Grid grid(size);
    // The list comes first, then what can be asked, then the machine.
    const int spare = size.rows - 6;
    int row = 0;

    if (mode_ == Mode::help) {
        draw_help(grid, help_line_);
    } else {
        if (spare >= 0)
            draw_title(grid), ++row;
        if (spare > 0 && model_.sample() != nullptr)
            row += draw_machine(grid, row, std::min(spare, 5), *model_.sample(), model_.kinds);
        const int height = size.rows - row - (size.rows > 1 ? 1 : 0);
        if (base_ != Mode::detail || !draw_chosen(grid, row, height))
            draw_body(grid, row, height);
    }
    if (size.rows > 1)
        draw_bottom(grid);
    return grid;
}

void TopUi::draw_title(Grid &grid) const {
    const std::string left =
        target_.empty() ? "umacct top" : fmt::format("umacct top {}", model_.shown(target_));
    const std::string right = fmt::format(
        "{}{}by {}{}   {}",
        model_.filter.empty() ? "" : fmt::format("filter: {}   ", printable(model_.filter)),
        model_.all && !model_.processes ? "idle too   " : "", model_.sort->name,
        model_.reversed ? ", reversed" : "",
        paused_ ? "PAUSED"
                : fmt::format("every {:g} s", std::chrono::duration<double>(delay_).count()));
    const int columns = grid.size().columns;
    const int room = columns - width_of(right) - 2;
    grid.put(0, 0, fitted(left, std::max(room, 10)), Tone::strong);
    if (room >= 10)
        grid.put(0, room + 2, right);
    else
        grid.put(0, 12, fitted(right, columns - 12));
}

/// False where there is nothing chosen any more: then the list says why.
bool TopUi::draw_chosen(Grid &grid, int row, int height) {
    const std::vector<TopRow> rows = model_.rows();

    if (rows.empty() || rows[model_.selected(rows)].account == nullptr)
        return false;
    TopRow chosen = rows[model_.selected(rows)];
    // A process's details are those of its cgroup.
    if (chosen.client != nullptr)
        chosen = model_.account_row(*chosen.account);
    draw_detail(grid, row, height, model_, chosen);
    return true;
}

void TopUi::draw_body(Grid &grid, int row, int height) {
    const std::vector<TopRow> rows = model_.rows();
    const std::size_t selected = model_.selected(rows);
    const int columns = grid.size().columns;

    page_ = std::max(height - 1, 1);
    if (!model_.problem().empty()) {
        grid.put(row, 0, fitted(model_.problem(), columns), Tone::refused);
        grid.put(row + 1, 0, fitted("trying again; q quits", columns));
        return;
    }
    const auto page = static_cast<std::size_t>(page_);
    first_ = std::min(first_, rows.size() > page ? rows.size() - page : 0);
    if (selected < first_)
        first_ = selected;
    else if (selected >= first_ + page)
        first_ = selected - page + 1;
    draw_table(grid, row, height, model_, rows, first_, selected);
    if (rows.empty()) {
        const char *text = !model_.filter.empty()
                               ? "no name contains the filter's text; Esc clears it"
                           : model_.processes ? "no process holds memory"
                           : model_.all       ? "there is no account"
                                              : "no account holds memory or has settings; "
                                                "a shows the rest";

        grid.put(row + 1, 0, fitted(text, columns));
    }
}

TopUi::Message TopUi::bottom_line() const {
    switch (mode_) {
    case Mode::list:
    case Mode::detail:
        break;
    case Mode::help:
        return {"any key goes back; up and down scroll", Tone::strong};
    case Mode::sort: {
        std::string text = "sort by";

        for (const Column &each : columns()) {
            if (each.key != 0)
                text += fmt::format("  {} {}", each.key, each.name);
        }
        return {text, Tone::strong};
    }
    case Mode::filter:
        return {fmt::format("filter: {}_  (Enter keeps it, Esc clears it)", printable(input_)),
                Tone::strong};
    case Mode::limit:
        return {fmt::format("hard limit of {} (now {}): {}_", named(chosen_),
                            format_limit(chosen_.hard), printable(input_)),
                Tone::strong};
    case Mode::confirm:
        return {question_ + " y/n", Tone::strong};
    }
    if (!message_.text.empty())
        return message_;
    if (mode_ == Mode::detail)
        return {"Esc back  up down another row  l limit  f freeze  K kill  h help  q quit",
                Tone::faint};
    return {"h help  Enter more  p processes  s sort  / filter  l limit  K kill  q quit",
            Tone::faint};
}

void TopUi::draw_bottom(Grid &grid) const {
    const int row = grid.size().rows - 1;
    const Message line = bottom_line();
    const int columns = grid.size().columns;
    const auto put = [&](int at, const std::string &text, Tone tone) {
        grid.put(at, 0, std::string(static_cast<std::size_t>(columns), ' '));
        grid.put(at, 0, text, tone);
    };

    if (mode_ == Mode::confirm) {
        // The subject matters as much as the answer: nothing is cut while there are rows.
        const std::vector<std::string> lines = wrapped(line.text, columns);
        const auto shown = std::min(lines.size(), static_cast<std::size_t>(row) + 1);

        for (std::size_t i = 0; i < shown; ++i)
            put(row - static_cast<int>(shown - 1 - i), lines[i + lines.size() - shown], line.tone);
        return;
    }
    // The end of an input matters.
    const bool typed = mode_ == Mode::filter || mode_ == Mode::limit;
    grid.put(row, 0, (typed ? fitted_end : fitted)(line.text, columns), line.tone);
    if (mode_ == Mode::limit && !message_.text.empty() && row > 0)
        put(row - 1, fitted(message_.text, columns), message_.tone);
}

} // namespace umacct::tool
