// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/ui.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/settings.h"
#include "tool/top/draw.h"

namespace umacct::tool {

namespace {

constexpr std::size_t input_most = 200;
constexpr char32_t control_u = 0x15;

std::string to_utf8(char32_t code) {
    const auto byte = [](char32_t value) { return static_cast<char>(value); };

    if (code < 0x80)
        return {byte(code)};
    if (code < 0x800)
        return {byte(0xC0 | code >> 6U), byte(0x80 | (code & 0x3FU))};
    if (code < 0x10000)
        return {byte(0xE0 | code >> 12U), byte(0x80 | (code >> 6U & 0x3FU)),
                byte(0x80 | (code & 0x3FU))};
    return {byte(0xF0 | code >> 18U), byte(0x80 | (code >> 12U & 0x3FU)),
            byte(0x80 | (code >> 6U & 0x3FU)), byte(0x80 | (code & 0x3FU))};
}

void drop_character(std::string &text) {
    while (!text.empty()) {
        const bool begins = (static_cast<unsigned char>(text.back()) & 0xC0U) != 0x80U;

        text.pop_back();
        if (begins)
            break;
    }
}

bool is(const Key &key, char32_t character) {
    return key.code == Key::Code::character && key.character == character;
}

std::string described(const Error &error) {
    return error.hint().empty() ? std::string(error.what())
                                : fmt::format("{}: {}", error.what(), error.hint());
}

} // namespace

TopUi::TopUi(TopModel &model, Settings settings) : model_(model), settings_(std::move(settings)) {}

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

TopUi::Wish TopUi::press(const Key &key) {
    if (key.code == Key::Code::stop)
        return Wish::quit;
    if (key.code == Key::Code::resize)
        return Wish::nothing;
    message_ = {};
    switch (mode_) {
    case Mode::list:
        return press_in_list(key);
    case Mode::help:
        press_in_help(key);
        break;
    case Mode::sort:
        press_in_sort(key);
        break;
    case Mode::filter:
        press_in_filter(key);
        break;
    case Mode::limit:
        press_in_limit(key);
        break;
    case Mode::confirm:
        return press_in_confirm(key);
    }
    return Wish::nothing;
}

TopUi::Wish TopUi::press_in_list(const Key &key) {
    using Code = Key::Code;

    struct Binding {
        Code code; ///< character for none but these
        std::string_view characters;
        void (*act)(TopUi &ui);
    };

    static constexpr std::array bindings{
        Binding{Code::up, "k", [](TopUi &ui) { ui.move(-1); }},
        Binding{Code::down, "j", [](TopUi &ui) { ui.move(1); }},
        Binding{Code::page_up, "", [](TopUi &ui) { ui.move(-ui.page_); }},
        Binding{Code::page_down, "", [](TopUi &ui) { ui.move(ui.page_); }},
        Binding{Code::home, "", [](TopUi &ui) { ui.move_to(0); }},
        Binding{Code::end, "", [](TopUi &ui) { ui.move_to(SIZE_MAX); }},
        Binding{Code::left, "-", [](TopUi &ui) { ui.fold(true); }},
        Binding{Code::right, "+", [](TopUi &ui) { ui.fold(false); }},
        Binding{Code::enter, "", [](TopUi &ui) { ui.toggle_fold(); }},
        Binding{Code::escape, "", [](TopUi &ui) { ui.model_.filter.clear(); }},
        Binding{Code::character, "*", [](TopUi &ui) { ui.model_.unfold_all(); }},
        Binding{Code::character, "a", [](TopUi &ui) { ui.model_.all = !ui.model_.all; }},
        Binding{Code::character, "s", [](TopUi &ui) { ui.mode_ = Mode::sort; }},
        Binding{Code::character, "r", [](TopUi &ui) { ui.model_.reversed = !ui.model_.reversed; }},
        Binding{Code::character, "l", [](TopUi &ui) { ui.ask_limit(); }},
        Binding{Code::character, "h?",
                [](TopUi &ui) {
                    ui.mode_ = Mode::help;
                    ui.help_line_ = 0;
                }},
        Binding{Code::character, "p",
                [](TopUi &ui) {
                    ui.model_.processes = !ui.model_.processes;
                    ui.first_ = 0;
                }},
        Binding{Code::character, "/",
                [](TopUi &ui) {
                    ui.mode_ = Mode::filter;
                    ui.input_ = ui.model_.filter;
                }},
    };

    if (is(key, 'q'))
        return Wish::quit;
    if (is(key, ' ')) {
        paused_ = !paused_;
        return paused_ ? Wish::nothing : Wish::refresh;
    }

    const auto *const bound = std::ranges::find_if(bindings, [&](const Binding &each) {
        return key.code == Code::character
                   ? std::ranges::any_of(each.characters, [&](char c) { return is(key, c); })
                   : key.code == each.code;
    });
    if (bound != bindings.end())
        bound->act(*this);
    return Wish::nothing;
}

void TopUi::press_in_help(const Key &key) {
    if (key.code == Key::Code::down || is(key, 'j'))
        help_line_ = std::min(help_line_ + 1, help_lines() - 1);
    else if (key.code == Key::Code::up || is(key, 'k'))
        help_line_ = std::max(help_line_ - 1, 0);
    else
        mode_ = Mode::list;
}

void TopUi::press_in_sort(const Key &key) {
    mode_ = Mode::list;
    for (const Column &each : columns()) {
        if (each.key == 0 || !is(key, static_cast<char32_t>(each.key)))
            continue;
        model_.reversed = model_.sort == &each && !model_.reversed;
        model_.sort = &each;
    }
}

void TopUi::press_in_filter(const Key &key) {
    if (key.code == Key::Code::enter) {
        mode_ = Mode::list;
    } else if (key.code == Key::Code::escape) {
        mode_ = Mode::list;
        model_.filter.clear();
    } else if (edit(key)) {
        model_.filter = input_;
    }
}

void TopUi::press_in_limit(const Key &key) {
    if (key.code == Key::Code::escape) {
        mode_ = Mode::list;
        message_ = {"nothing was changed"};
    } else if (key.code == Key::Code::enter) {
        read_limit();
    } else {
        edit(key);
    }
}

TopUi::Wish TopUi::press_in_confirm(const Key &key) {
    mode_ = Mode::list;
    if (is(key, 'y') || is(key, 'Y'))
        return set_limit();
    message_ = {"nothing was changed"};
    return Wish::nothing;
}

/// Whether the key changed the input.
bool TopUi::edit(const Key &key) {
    const bool printable = key.character >= ' ' && key.character != 0x7F;

    if (key.code == Key::Code::backspace)
        drop_character(input_);
    else if (is(key, control_u))
        input_.clear();
    else if (key.code == Key::Code::character && printable && input_.size() < input_most)
        input_ += to_utf8(key.character);
    else
        return false;
    return true;
}

void TopUi::move(long rows) {
    const std::vector<TopRow> all = model_.rows();
    const auto from = static_cast<long>(model_.selected(all));

    move_to(static_cast<std::size_t>(std::max(from + rows, 0L)));
}

void TopUi::move_to(std::size_t index) {
    const std::vector<TopRow> rows = model_.rows();

    if (!rows.empty())
        model_.select(rows[std::min(index, rows.size() - 1)]);
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

void TopUi::toggle_fold() {
    const std::vector<TopRow> rows = model_.rows();

    if (!rows.empty() && rows[model_.selected(rows)].parent)
        fold(rows[model_.selected(rows)].open);
}

void TopUi::ask_limit() {
    const std::vector<TopRow> rows = model_.rows();
    const Account *account =
        rows.empty() ? nullptr : model_.account(rows[model_.selected(rows)].key.account);

    if (account == nullptr) {
        message_ = {"there is no cgroup to limit"};
        return;
    }
    limited_ = *account;
    input_.clear();
    mode_ = Mode::limit;
}

void TopUi::read_limit() {
    if (input_.empty()) {
        mode_ = Mode::list;
        message_ = {"nothing was changed"};
        return;
    }
    try {
        bytes_ = parse_limit(input_);
        mode_ = Mode::confirm;
    } catch (const Error &error) {
        message_ = {described(error), Tone::refused};
    }
}

TopUi::Wish TopUi::set_limit() {
    try {
        const LimitSet set = settings_.set_limit(limited_, bytes_);
        const std::string said = change_text(model_.shown(limited_.path) + ": hard limit",
                                             format_limit(set.before), format_limit(set.after));

        // What is not so comes first: a screen may cut the end off.
        if (is_unenforced(set.made))
            message_ = {
                fmt::format("nothing enforces it: {}; {}", printable(set.made.reason), said),
                Tone::refused};
        else if (set.made.driver_state == UMACCT_DRIVER_ABSENT)
            message_ = {said + "; it holds from when the driver is loaded"};
        else
            message_ = {said};
    } catch (const Error &error) {
        message_ = {described(error), Tone::refused};
        return Wish::nothing;
    }
    return Wish::refresh;
}

// --- the screen -----------------------------------------------------------------

Grid TopUi::draw(Size size, bool unicode) {
    Grid grid(size, unicode);
    // The list comes first, then what can be asked, then the machine.
    const int spare = size.rows - 6;
    int row = 0;

    if (mode_ == Mode::help) {
        draw_help(grid, help_line_);
    } else {
        if (spare >= 0)
            draw_title(grid), ++row;
        if (spare > 0 && model_.sample() != nullptr)
            row += draw_machine(grid, row, std::min(spare, 5), *model_.sample());
        draw_body(grid, row, size.rows - row - (size.rows > 1 ? 1 : 0));
    }
    if (size.rows > 1)
        draw_bottom(grid);
    return grid;
}

void TopUi::draw_title(Grid &grid) const {
    const std::string left = settings_.target.empty()
                                 ? "umacct top"
                                 : fmt::format("umacct top {}", model_.shown(settings_.target));
    const std::string right = fmt::format(
        "{}{}by {}{}   {}",
        model_.filter.empty() ? "" : fmt::format("filter: {}   ", printable(model_.filter)),
        model_.all && !model_.processes ? "idle too   " : "", model_.sort->name,
        model_.reversed ? ", reversed" : "",
        paused_
            ? "PAUSED"
            : fmt::format("every {:g} s", std::chrono::duration<double>(settings_.delay).count()));
    const int columns = grid.size().columns;
    const int room = columns - width_of(right, grid.unicode()) - 2;
    grid.put(0, 0, fitted(left, std::max(room, 10), grid.unicode()), Tone::strong);
    if (room >= 10)
        grid.put(0, room + 2, right);
    else
        grid.put(0, 12, fitted(right, columns - 12, grid.unicode()));
}

void TopUi::draw_body(Grid &grid, int row, int height) {
    const std::vector<TopRow> rows = model_.rows();
    const std::size_t selected = model_.selected(rows);
    const int columns = grid.size().columns;

    page_ = std::max(height - 1, 1);
    if (!model_.problem().empty()) {
        grid.put(row, 0, fitted(model_.problem(), columns, grid.unicode()), Tone::refused);
        grid.put(row + 1, 0, fitted("trying again; q quits", columns, grid.unicode()));
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

        grid.put(row + 1, 0, fitted(text, columns, grid.unicode()));
    }
}

TopUi::Message TopUi::bottom_line() const {
    switch (mode_) {
    case Mode::list:
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
        return {fmt::format("hard limit of {} (now {}): {}_", model_.shown(limited_.path),
                            format_limit(limited_.hard), printable(input_)),
                Tone::strong};
    case Mode::confirm: {
        const bool above = bytes_ != UMACCT_UNLIMITED && limited_.usage > bytes_;

        return {
            fmt::format("set the hard limit of {} to {}?{} y/n", model_.shown(limited_.path),
                        bytes_ == UMACCT_UNLIMITED ? "max" : format_size(bytes_),
                        above ? " It holds more: that stays, new allocations are refused." : ""),
            Tone::strong};
    }
    }
    if (!message_.text.empty())
        return message_;
    return {"h help  p processes  s sort  / filter  l limit  space pause  q quit", Tone::faint};
}

void TopUi::draw_bottom(Grid &grid) const {
    const int row = grid.size().rows - 1;
    const Message line = bottom_line();
    const bool asks = mode_ == Mode::filter || mode_ == Mode::limit || mode_ == Mode::confirm;
    const int columns = grid.size().columns;
    // Of a question the end matters, where the answer is.
    const auto fit = asks ? fitted_end : fitted;

    grid.put(row, 0, fit(line.text, columns, grid.unicode()), line.tone);
    if (mode_ == Mode::limit && !message_.text.empty() && row > 0) {
        grid.put(row - 1, 0, std::string(static_cast<std::size_t>(columns), ' '));
        grid.put(row - 1, 0, fitted(message_.text, columns, grid.unicode()), message_.tone);
    }
}

} // namespace umacct::tool
