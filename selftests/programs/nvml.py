# SPDX-License-Identifier: GPL-2.0-or-later
#
# nvml.py: what NVML says, asked by pynvml as Python's programs do: "memory TOTAL FREE USED",
# or "memory" and the error; then "PID BYTES" for each process that computes, by pid. With
# "ps", the latter for what "umacct ps --json" prints, which is read from the standard input;
# with "gpustat", for "gpustat --json".
import json
import sys

MIB = 1 << 20


def nvml():
    import pynvml

    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(device)
        print("memory", memory.total, memory.free, memory.used)
    except pynvml.NVMLError as error:
        print("memory", error)
    return {p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}


def ps():
    found = {}
    for client in json.load(sys.stdin)["clients"]:
        if client["pid"] and not client["exited"]:
            found[client["pid"]] = found.get(client["pid"], 0) + client["usage_bytes"]
    return found


def gpustat():
    gpu = json.load(sys.stdin)["gpus"][0]
    print("memory", gpu["memory.total"] * MIB, gpu["memory.used"] * MIB)
    return {p["pid"]: p["gpu_memory_usage"] * MIB for p in gpu["processes"]}


asked = {"ps": ps, "gpustat": gpustat}.get(sys.argv[1] if len(sys.argv) > 1 else "", nvml)
for pid, used in sorted(asked().items()):
    print(pid, used)
