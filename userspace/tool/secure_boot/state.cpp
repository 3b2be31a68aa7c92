// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/secure_boot/state.h"

#include <fmt/format.h>

#include "lib/host/text_file.h"

namespace umacct::tool::secure_boot {

namespace fs = std::filesystem;

namespace {

/// Whether a list of certificates has this one, which is in it as it is; empty where there is
/// no such list.
std::optional<bool> has(const fs::path &list, const std::string &certificate) {
    const std::string all = contents_of(list);

    if (all.empty())
        return std::nullopt;
    return !certificate.empty() && all.find(certificate) != std::string::npos;
}

} // namespace

State read_state(const fs::path &root) {
    const fs::path variables = root / "sys/firmware/efi/efivars";
    const std::string secure =
        contents_of(variables / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    State state;

    state.lockdown = line_of(root / "sys/kernel/security/lockdown");
    state.locked = !state.lockdown.empty() && state.lockdown.find("[none]") == std::string::npos;
    // Four bytes of attributes come before the value.
    state.secure = secure.size() > 4 && secure[4] == '\1';
    state.sig_enforce = line_of(root / "sys/module/module/parameters/sig_enforce") == "Y";

    for (const char *file : {"var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub"}) {
        if (state.certificate.empty() && is_there(root / file))
            state.certificate = root / file;
    }
    if (state.certificate.empty())
        return state;

    const std::string certificate = contents_of(state.certificate);
    state.enrolled = has(root / "sys/firmware/efi/mok-variables/MokListRT", certificate);
    if (!state.enrolled)
        state.enrolled =
            has(variables / "MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23", certificate);
    state.pending =
        has(variables / "MokNew-605dab50-e046-4300-abb6-3dd810dd8b23", certificate).value_or(false);
    return state;
}

std::string State::text() const {
    return fmt::format("Secure Boot {}, lockdown {}{}", secure ? "on" : "off",
                       lockdown.empty() ? "not in this kernel" : lockdown,
                       sig_enforce ? ", module.sig_enforce on" : "");
}

std::string State::how_to_enroll() const {
    return pending ? "reboot, and choose 'Enroll MOK' at the machine's screen"
                   : "umacct setup secure-boot";
}

} // namespace umacct::tool::secure_boot
