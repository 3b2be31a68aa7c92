// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct_docgen DIRECTORY VERSION DATE: writes the manual and the completions there.
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "docgen/completions.h"
#include "docgen/interface.h"
#include "docgen/manual.h"
#include "lib/error.h"
#include "tool/cli.h"

namespace {

using namespace umacct;
namespace fs = std::filesystem;

void write(const fs::path &file, const std::function<void(std::ostream &)> &print) {
    fs::create_directories(file.parent_path());
    std::ofstream out(file);

    print(out);
    if (!out.flush())
        throw Error(Failure::failed, file.string() + " can't be written");
}

void generate(const fs::path &directory, const docgen::Edition &edition) {
    tool::Context context({.connect = []() -> std::unique_ptr<Transport> { return nullptr; },
                           .proc = "/proc",
                           .out = std::cout,
                           .err = std::cerr});
    const docgen::Interface interface = docgen::read_interface(*tool::make_app(context));

    write(directory / "man/umacct.1",
          [&](std::ostream &out) { docgen::print_manual(out, interface, edition); });
    for (const docgen::Verb &verb : interface.verbs)
        write(directory / ("man/umacct-" + verb.name + ".1"),
              [&](std::ostream &out) { docgen::print_manual(out, interface, verb, edition); });
    write(directory / "bash/umacct",
          [&](std::ostream &out) { docgen::print_bash(out, interface); });
    write(directory / "zsh/_umacct", [&](std::ostream &out) { docgen::print_zsh(out, interface); });
    write(directory / "fish/umacct.fish",
          [&](std::ostream &out) { docgen::print_fish(out, interface); });
}

} // namespace

int main(int argc, char **argv) {
    try {
        if (argc != 4)
            throw Error(Failure::usage, "usage: umacct_docgen DIRECTORY VERSION DATE");
        generate(argv[1], {.version = argv[2], .date = argv[3]});
        return 0;
    } catch (const std::exception &error) {
        std::cerr << "umacct_docgen: " << error.what() << '\n';
        return 1;
    }
}
