// SPDX-License-Identifier: GPL-2.0-or-later
/// Memory taken through CUDA's driver library, in each way that programs take it. The library is
/// loaded when it is needed; its answers are CUDA's own numbers, 0 for success.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace umacct::tool::doctor {

class Cuda {
public:
    /// Answers that CUDA doesn't give.
    enum : int { no_library = -1, no_function = -2, no_host_memory = -3, bad_file = -4 };

    Cuda();

    /// Opens the first GPU, and a context on it.
    int open();

    /// The GPU reads and writes the pages of a process without a call: it has ATS.
    bool has_ats() const;

    int allocate(std::size_t size, std::size_t count = 1);
    int allocate_async(std::size_t size);
    /// host: from the CPU's NUMA node, else from the GPU.
    int create(std::size_t size, bool host);
    int allocate_managed(std::size_t size, bool by_gpu);
    int allocate_host(std::size_t size);
    int register_host(std::size_t size);
    int touch_by_ats(std::size_t size);

    /// Takes memory that another process may hold, too. file: what to hand over.
    int export_memory(std::size_t size, int &file);
    int import_memory(int file);

    /// Gives back all that was taken.
    int free_all();

private:
    using Pointer = unsigned long long;
    using Handle = unsigned long long;

    /// The library's function of that name, or no_function where it has none.
    template <class... Arguments>
    int call(const char *function, Arguments... arguments) const;
    void *map_host(std::size_t size);
    int create_exportable(std::size_t size, int location, bool exportable);

    void *library_;
    int device_ = 0;
    std::vector<Pointer> allocated_;
    std::vector<Pointer> async_;
    std::vector<Handle> created_;
    void *pinned_ = nullptr;
    void *mapped_ = nullptr; ///< the process's own memory
    std::size_t mapped_size_ = 0;
    bool registered_ = false;
};

} // namespace umacct::tool::doctor
