// SPDX-License-Identifier: GPL-2.0-or-later
/// TARGET as a user writes it, on a machine with a few cgroups.
#include "lib/owners/target.h"

#include "tests/fuzz/fuzz.h"
#include "tests/sandbox.h"

using namespace umacct;

namespace {

struct Machine {
    Machine() {
        for (const char *path :
             {"/system.slice/ollama.service", "/user.slice/user@1000.service/ollama.service",
              "/docker/4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab",
              "/docker/1234567890123456789012345678901234567890123456789012345678901234"})
            sandbox.add_cgroup(path);
        sandbox.add_process(1234, "/system.slice/ollama.service");
    }

    test::Sandbox sandbox;
    Cgroups cgroups{sandbox.proc()};
    Owners owners{sandbox.proc().parent_path()};
};

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    static const Machine machine;
    const std::string text = fuzz::text_of(data, size);

    fuzz::may_refuse([&] {
        const Target target = resolve_target(text, machine.cgroups, machine.owners);

        fuzz::expect(target.path.starts_with('/') && machine.cgroups.exists(target.path),
                     "a target is a cgroup");
        fuzz::expect(target.id == machine.cgroups.id(target.path), "its id is the cgroup's");
        fuzz::expect(target.pid.has_value() == (target.found == FoundBy::pid), "a pid by a pid");
        fuzz::expect(resolve_target("path:" + target.path, machine.cgroups, machine.owners).id ==
                         target.id,
                     "its path names it");
    });
    return 0;
}
