// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/secure_boot/enroll.h"

#include <cerrno>
#include <random>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/host/library.h"
#include "lib/host/program.h"
#include "lib/host/text_file.h"
#include "tool/secure_boot/state.h"

namespace umacct::tool::secure_boot {

namespace fs = std::filesystem;

namespace {

/// The files of the key that DKMS signs with from now on, by the distribution's own way.
std::vector<std::string> make_key(const fs::path &root) {
    const fs::path ubuntus = root / "usr/sbin/update-secureboot-policy";
    const fs::path folder = root / "var/lib/dkms";
    const std::string key = folder / "mok.key";
    const std::string certificate = folder / "mok.pub";

    if (is_there(ubuntus)) {
        run_program({ubuntus, "--new-key"}, "shim-signed");
    } else {
        std::error_code error;

        fs::create_directories(folder, error);
        run_program({"openssl", "req", "-new", "-x509", "-nodes", "-days", "36500", "-subj",
                     "/CN=DKMS module signing key", "-newkey", "rsa:2048", "-keyout", key,
                     "-outform", "DER", "-out", certificate},
                    "openssl");
        return {key, certificate};
    }
    return {read_state(root).certificate.string()};
}

std::string random_text(std::string_view letters, std::size_t length) {
    std::random_device source;
    std::uniform_int_distribution<std::size_t> any(0, letters.size() - 1);
    std::string text;

    while (text.size() < length)
        text += letters[any(source)];
    return text;
}

/// The hash in the format of crypt(5), which the firmware's program understands.
std::string hash_of(const std::string &password) {
    const Library library("libcrypt.so.1", "there is no hash of a password");
    char *(*const crypt)(const char *, const char *) = library.find("crypt");
    const std::string salt = "$6$" + random_text("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                 "abcdefghijklmnopqrstuvwxyz",
                                                 16);
    const char *hash = crypt(password.c_str(), salt.c_str());

    if (hash == nullptr || !std::string_view(hash).starts_with(salt))
        throw Error(Failure::failed, "cannot make a hash of the password");
    return hash;
}

/// A password is asked for at a screen whose keyboard may be any country's: digits are where
/// they are. It is never on a command line, nor in a file.
std::string queue(const fs::path &certificate) {
    std::string password = random_text("0123456789", 8);
    const std::string hash = hash_of(password);
    const FileDescriptor file(memfd_create("hash", 0)); // mokutil inherits it

    if (file.get() < 0 ||
        write(file.get(), hash.data(), hash.size()) != static_cast<ssize_t>(hash.size()))
        throw std::system_error(errno, std::generic_category(), "a file in memory");
    run_program({"mokutil", "--hash-file", fmt::format("/proc/self/fd/{}", file.get()), "--import",
                 certificate},
                "mokutil");
    return password;
}

constexpr std::string_view screens =
    "Somebody has to be at the machine's screen and keyboard for it, or at its remote console:\n"
    "\n"
    "  1. reboot\n"
    "  2. within ten seconds: \"Press any key to perform MOK management\"\n"
    "  3. Enroll MOK, Continue, Yes\n"
    "  4. Password: {}\n"
    "  5. Reboot\n"
    "\n"
    "That is once per machine. Then 'umacct doctor' says whether the key is enrolled.";

} // namespace

Queued enroll(const fs::path &root) {
    Queued queued;
    State state = read_state(root);

    if (!state.strict()) {
        queued.then = state.text() + ": this kernel loads unsigned modules";
        return queued;
    }
    if (geteuid() != 0)
        throw Error(Failure::permission, "cannot enrol a key: permission denied",
                    "sudo umacct setup secure-boot");
    if (state.certificate.empty()) {
        queued.files = make_key(root);
        state = read_state(root);
    }
    if (state.enrolled.value_or(false)) {
        queued.then = fmt::format("{}: {} is enrolled", state.text(), state.certificate.string());
        return queued;
    }

    const std::string when = fmt::format(
        "{}: {}, and the firmware asks about {} at the next boot.\n", state.text(),
        "the kernel loads modules that are signed with a key it knows", state.certificate.string());
    queued.then =
        when + (state.pending ? fmt::format(screens, "as it was printed when this was queued")
                              : fmt::format(screens, queue(state.certificate)));
    if (!queued.files.empty())
        queued.then += fmt::format("\nTo sign the module with it now: dkms install --force "
                                   "umacct/{}",
                                   UMACCT_VERSION);
    return queued;
}

std::vector<std::string> revoke(const fs::path &root) {
    const State state = read_state(root);

    if (!state.pending)
        return {};
    run_program({"mokutil", "--revoke-import"}, "mokutil");
    return {fmt::format("the request to enroll {}", state.certificate.string())};
}

} // namespace umacct::tool::secure_boot
