// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/owner.h"

#include <gtest/gtest.h>

namespace umacct {
namespace {

constexpr const char *id = "4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab";

struct Recorded {
    std::string path;
    const char *runtime; ///< null: names no owner
    std::string owner;
    OwnerKind kind;
};

[[maybe_unused]] std::ostream &operator<<(std::ostream &out, const Recorded &recorded) {
    return out << recorded.path;
}

std::string with_id(const std::string &before, const std::string &after = "") {
    return before + id + after;
}

class RecordedPath : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedPath, TellsItsOwner) {
    const Recorded &recorded = GetParam();
    const auto owner = owner_of(recorded.path);

    if (recorded.runtime == nullptr) {
        EXPECT_FALSE(owner) << owner->label();
        return;
    }
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->runtime, recorded.runtime);
    EXPECT_EQ(owner->id, recorded.owner);
    EXPECT_EQ(owner->kind, recorded.kind);
}

constexpr const char *uid = "8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab";

// Paths as each runtime makes them, with the systemd driver and with cgroupfs.
INSTANTIATE_TEST_SUITE_P(
    Owner, RecordedPath,
    testing::Values(
        Recorded{with_id("/system.slice/docker-", ".scope"), "docker", id, OwnerKind::container},
        Recorded{with_id("/docker/"), "docker", id, OwnerKind::container},
        Recorded{with_id("/machine.slice/libpod-", ".scope"), "podman", id, OwnerKind::container},
        Recorded{
            with_id("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-", ".scope"),
            "podman", id, OwnerKind::container},
        Recorded{with_id("/libpod_parent/libpod-"), "podman", id, OwnerKind::container},
        Recorded{with_id("/libpod_parent/"), "podman", id, OwnerKind::pod},
        Recorded{with_id("/libpod_parent/", std::string("/libpod-") + id), "podman", id,
                 OwnerKind::container},
        Recorded{with_id("/machine.slice/machine-libpod_pod_", ".slice"), "podman", id,
                 OwnerKind::pod},
        Recorded{with_id("/user.slice/user-1000.slice/user@1000.service/user.slice/"
                         "user-libpod_pod_",
                         ".slice"),
                 "podman", id, OwnerKind::pod},
        Recorded{
            with_id("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-", ".scope"),
            "docker", id, OwnerKind::container},
        Recorded{"/libpod_parent/conmon", nullptr, "", OwnerKind::unit},
        Recorded{with_id("/machine.slice/libpod-conmon-", ".scope"), "systemd",
                 with_id("libpod-conmon-", ".scope"), OwnerKind::unit},
        Recorded{with_id("/machine.slice/libpod-", ".scope/container"), nullptr, "",
                 OwnerKind::unit},
        Recorded{with_id("/kubepods.slice/kubepods-burstable.slice/"
                         "kubepods-burstable-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice/"
                         "cri-containerd-",
                         ".scope"),
                 "containerd", id, OwnerKind::container},
        Recorded{with_id("/kubepods.slice/kubepods-besteffort.slice/"
                         "kubepods-besteffort-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice/crio-",
                         ".scope"),
                 "cri-o", id, OwnerKind::container},
        Recorded{"/kubepods.slice/kubepods-burstable.slice/"
                 "kubepods-burstable-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice",
                 "kubernetes", uid, OwnerKind::pod},
        Recorded{"/kubepods.slice/kubepods-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice",
                 "kubernetes", uid, OwnerKind::pod},
        Recorded{"/kubepods.slice/kubepods-burstable.slice/"
                 "kubepods-burstable-pod0123456789abcdef0123456789abcdef.slice",
                 "kubernetes", "0123456789abcdef0123456789abcdef", OwnerKind::pod},
        Recorded{std::string("/kubepods/burstable/pod") + uid, "kubernetes", uid, OwnerKind::pod},
        Recorded{with_id(std::string("/kubepods/burstable/pod") + uid + "/"), "kubernetes", id,
                 OwnerKind::container},
        Recorded{with_id(std::string("/kubepods/besteffort/pod") + uid + "/crio-"), "cri-o", id,
                 OwnerKind::container},
        Recorded{with_id(std::string("/kubepods/besteffort/pod") + uid + "/crio-conmon-"), nullptr,
                 "", OwnerKind::unit},
        Recorded{with_id(std::string("/kubepods/pod") + uid + "/"), "kubernetes", id,
                 OwnerKind::container},
        Recorded{with_id("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                         "kubelet-kubepods-burstable-"
                         "pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice/cri-containerd-",
                         ".scope"),
                 "containerd", id, OwnerKind::container},
        Recorded{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                 "kubelet-kubepods-burstable-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice",
                 "kubernetes", uid, OwnerKind::pod},
        Recorded{with_id("/kubepods.slice/kubepods-burstable.slice/"
                         "kubepods-burstable-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice/docker-",
                         ".scope"),
                 "docker", id, OwnerKind::container},
        Recorded{with_id("/kubepods.slice/kubepods-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice/"
                         "crio-conmon-",
                         ".scope"),
                 "systemd", with_id("crio-conmon-", ".scope"), OwnerKind::unit},
        Recorded{with_id("/system.slice/nerdctl-", ".scope"), "containerd", id,
                 OwnerKind::container},
        Recorded{"/kubepods.slice/kubepods-burstable.slice", "systemd", "kubepods-burstable.slice",
                 OwnerKind::unit},
        Recorded{"/system.slice/ollama.service", "systemd", "ollama.service", OwnerKind::unit},
        Recorded{"/user.slice/user-1000.slice/session-3.scope", "systemd", "session-3.scope",
                 OwnerKind::unit},
        Recorded{"/user.slice", "systemd", "user.slice", OwnerKind::unit},
        Recorded{"/docker/4f5a9c0b7d1e", nullptr, "", OwnerKind::unit},
        Recorded{with_id("/elsewhere/"), nullptr, "", OwnerKind::unit},
        Recorded{"/system.slice/docker-ABC.scope", "systemd", "docker-ABC.scope", OwnerKind::unit},
        Recorded{"/tripod", nullptr, "", OwnerKind::unit},
        Recorded{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-a.slice/a.service",
                 "systemd", "a.service", OwnerKind::unit},
        // Folders of other systems' service managers, and of tenants that name one so.
        Recorded{"/lxc.payload.t/system.slice/ollama.service", nullptr, "", OwnerKind::unit},
        Recorded{"/lxc/t/system.slice/ollama.service", nullptr, "", OwnerKind::unit},
        Recorded{"/lxc.payload.t.slice/ollama.service", nullptr, "", OwnerKind::unit},
        Recorded{"/machine.slice/machine-foo.scope/payload/system.slice/ollama.service", nullptr,
                 "", OwnerKind::unit},
        Recorded{"/tenant/system.slice/ollama.service", nullptr, "", OwnerKind::unit},
        Recorded{"/system.slice/ollama.service/system.slice/ollama.service", nullptr, "",
                 OwnerKind::unit},
        Recorded{"/system.slice/user-1.slice/a.service", nullptr, "", OwnerKind::unit},
        Recorded{"/a.slice/b.slice", nullptr, "", OwnerKind::unit},
        Recorded{"/user.slice/user-1000.slice/user@1001.service/app.slice/a.service", nullptr, "",
                 OwnerKind::unit},
        Recorded{with_id("/tenant/cri-containerd-", ".scope"), nullptr, "", OwnerKind::unit},
        Recorded{with_id("/lxc.payload.t/system.slice/docker-", ".scope"), nullptr, "",
                 OwnerKind::unit},
        Recorded{std::string("/tenant/kubepods/pod") + uid, nullptr, "", OwnerKind::unit},
        // LXC's, LXD's and Incus's own, as a whole.
        Recorded{"/lxc.payload.t", "lxc", "t", OwnerKind::container},
        Recorded{"/lxc/t", "lxc", "t", OwnerKind::container},
        Recorded{"/lxc/", nullptr, "", OwnerKind::unit},
        Recorded{"/tenant/lxc.payload.t", nullptr, "", OwnerKind::unit},
        Recorded{"/", nullptr, "", OwnerKind::unit}));

TEST(Owner, TheUserOfARootlessContainerIsInItsPath) {
    EXPECT_EQ(user_of("/user.slice/user-1000.slice/user@1000.service/user.slice/x.scope"), 1000U);
    EXPECT_FALSE(user_of("/user.slice/user-1000.slice/session-3.scope"));
    EXPECT_FALSE(user_of("/user@1000.service")) << "a folder of that name is no manager";
    EXPECT_FALSE(user_of("/tenant/user.slice/user-0.slice/user@0.service"));
    EXPECT_FALSE(user_of("/user.slice/user-1000.slice/user@1001.service"));
    for (const char *wrong : {"", "x", "99999999999", "1000/"})
        EXPECT_FALSE(
            user_of(std::string("/user.slice/user-") + wrong + ".slice/user@" + wrong + ".service"))
            << wrong;
}

} // namespace
} // namespace umacct
