// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/cuda.h"

#include <array>
#include <cstring>

#include <dlfcn.h>
#include <sys/mman.h>

#include "lib/host/library.h"

namespace umacct::tool::doctor {

namespace {

// The numbers and structures of CUDA's ABI that are needed, by their names there.
constexpr int attribute_pageable_memory_access = 88;
constexpr int pool_release_threshold = 4;
constexpr unsigned attach_global = 1;
constexpr int allocation_pinned = 1;
constexpr int handle_posix_file = 1;
constexpr int location_device = 1;
constexpr int location_host_numa = 3;

struct Location {
    int type;
    int id;
};

struct Properties {
    int type;
    int handle_types;
    Location location;
    void *windows;
    std::array<unsigned char, 8> flags;
};

} // namespace

Cuda::Cuda() : library_(load_library("libcuda.so.1")) {}

template <class... Arguments>
int Cuda::call(const char *function, Arguments... arguments) const {
    if (library_ == nullptr)
        return no_library;
    const auto found = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, function));
    return found == nullptr ? no_function : found(arguments...);
}

int Cuda::open() {
    void *context = nullptr;

    if (const int error = call("cuInit", 0U))
        return error;
    if (const int error = call("cuDeviceGet", &device_, 0))
        return error;
    if (const int error = call("cuDevicePrimaryCtxRetain", &context, device_))
        return error;
    return call("cuCtxSetCurrent", context);
}

bool Cuda::has_ats() const {
    int value = 0;

    return call("cuDeviceGetAttribute", &value, attribute_pageable_memory_access, device_) == 0 &&
           value == 1;
}

int Cuda::allocate(std::size_t size, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        Pointer pointer = 0;

        if (const int error = call("cuMemAlloc_v2", &pointer, size))
            return error;
        allocated_.push_back(pointer);
        const unsigned char value = 0x5a;
        if (const int error = call("cuMemsetD8_v2", pointer, value, size))
            return error;
    }
    return call("cuCtxSynchronize");
}

int Cuda::allocate_async(std::size_t size) {
    void *pool = nullptr;
    void *stream = nullptr;
    std::uint64_t keep = UINT64_MAX;
    Pointer pointer = 0;

    if (const int error = call("cuDeviceGetDefaultMemPool", &pool, device_))
        return error;
    if (const int error =
            call("cuMemPoolSetAttribute", pool, pool_release_threshold, static_cast<void *>(&keep)))
        return error;
    if (const int error = call("cuMemAllocAsync", &pointer, size, stream))
        return error;
    async_.push_back(pointer);
    return call("cuCtxSynchronize");
}

int Cuda::create_exportable(std::size_t size, int location, bool exportable) {
    Properties properties{
        .type = allocation_pinned,
        .handle_types = exportable ? handle_posix_file : 0,
        .location = {.type = location, .id = location == location_device ? device_ : 0},
        .windows = nullptr,
        .flags = {}};
    Handle handle = 0;

    if (const int error = call("cuMemCreate", &handle, size, &properties, 0ULL))
        return error;
    created_.push_back(handle);
    return 0;
}

int Cuda::create(std::size_t size, bool host) {
    return create_exportable(size, host ? location_host_numa : location_device, false);
}

int Cuda::allocate_managed(std::size_t size, bool by_gpu) {
    Pointer pointer = 0;
    const unsigned char value = 0x5a;

    if (const int error = call("cuMemAllocManaged", &pointer, size, attach_global))
        return error;
    allocated_.push_back(pointer);
    if (!by_gpu) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA says addresses as numbers
        std::memset(reinterpret_cast<void *>(pointer), value, size);
        return 0;
    }
    if (const int error = call("cuMemsetD8_v2", pointer, value, size))
        return error;
    return call("cuCtxSynchronize");
}

int Cuda::allocate_host(std::size_t size) {
    if (const int error = call("cuMemHostAlloc", &pinned_, size, 0U))
        return error;
    std::memset(pinned_, 0x5a, size);
    return 0;
}

/// Takes memory of the process's own, with its pages.
void *Cuda::map_host(std::size_t size) {
    void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (address == MAP_FAILED) // NOLINT: the C library's cast
        return nullptr;
    mapped_ = address;
    mapped_size_ = size;
    return address;
}

int Cuda::register_host(std::size_t size) {
    void *address = map_host(size);

    if (address == nullptr)
        return no_host_memory;
    const int error = call("cuMemHostRegister_v2", address, size, 0U);
    registered_ = error == 0;
    return error;
}

int Cuda::touch_by_ats(std::size_t size) {
    void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const unsigned char value = 0x5a;

    if (address == MAP_FAILED) // NOLINT: the C library's cast
        return no_host_memory;
    mapped_ = address;
    mapped_size_ = size;
    if (const int error = call("cuMemsetD8_v2", reinterpret_cast<Pointer>(address), value, size))
        return error;
    return call("cuCtxSynchronize");
}

int Cuda::export_memory(std::size_t size, int &file) {
    if (const int error = create_exportable(size, location_device, true))
        return error;
    return call("cuMemExportToShareableHandle", static_cast<void *>(&file), created_.back(),
                handle_posix_file, 0ULL);
}

int Cuda::import_memory(int file) {
    Handle handle = 0;

    if (file < 0)
        return bad_file;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): so it is handed over
    void *shared = reinterpret_cast<void *>(static_cast<std::intptr_t>(file));
    if (const int error =
            call("cuMemImportFromShareableHandle", &handle, shared, handle_posix_file))
        return error;
    created_.push_back(handle);
    return 0;
}

int Cuda::free_all() {
    int first_error = 0;
    const auto note = [&first_error](int error) {
        first_error = first_error != 0 ? first_error : error;
    };

    for (const Pointer pointer : allocated_)
        note(call("cuMemFree_v2", pointer));
    for (const Pointer pointer : async_)
        note(call("cuMemFreeAsync", pointer, static_cast<void *>(nullptr)));
    if (!async_.empty()) {
        void *pool = nullptr;

        note(call("cuCtxSynchronize"));
        note(call("cuDeviceGetDefaultMemPool", &pool, device_));
        note(call("cuMemPoolTrimTo", pool, std::size_t{0}));
    }
    for (const Handle handle : created_)
        note(call("cuMemRelease", handle));
    if (pinned_ != nullptr)
        note(call("cuMemFreeHost", pinned_));
    if (registered_)
        note(call("cuMemHostUnregister", mapped_));
    if (mapped_ != nullptr)
        munmap(mapped_, mapped_size_);
    allocated_.clear();
    async_.clear();
    created_.clear();
    pinned_ = mapped_ = nullptr;
    registered_ = false;
    return first_error;
}

} // namespace umacct::tool::doctor
