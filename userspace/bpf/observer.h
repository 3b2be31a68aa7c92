/* SPDX-License-Identifier: GPL-2.0-only */
/* The values of the BPF programs' maps, for the programs and their readers. Sizes are in bytes. */
#ifndef UMACCT_OBSERVER_H
#define UMACCT_OBSERVER_H

#include <linux/types.h>

/* Rises with each change below: maps of another version that are pinned can't be read. */
#define OBSERVER_VERSION	8

/* Same depth as the module's: deeper cgroups count for their ancestor at that level. */
#define OBSERVER_LEVEL_MAX	64

/* The root's, in every kernel. */
#define OBSERVER_ROOT_ID	1

/* No tenant can make the maps grow beyond these; what finds no room is counted as untracked. */
#define OBSERVER_ACCOUNTS	16384
#define OBSERVER_CLIENTS	32768
#define OBSERVER_RECORDS	(1 << 20)

/* The hooked functions, each with its row of the map "hooks". */
enum observer_place {
	/* A task's call of one of these is tracked until it returns. */
	OBSERVER_ALLOC,
	OBSERVER_CHUNK,
	OBSERVER_POOL,
	OBSERVER_REGISTER,
	OBSERVER_CALLS,
	OBSERVER_FREE = OBSERVER_CALLS,
	OBSERVER_FREE_CONTIGUOUS,
	OBSERVER_FREE_CHUNK,
	OBSERVER_FREE_POOL,
	OBSERVER_UNREGISTER,
	OBSERVER_OPEN_DEVICE,
	OBSERVER_RETAIN_GPU,
	OBSERVER_HOOKS,
};

enum observer_kind {
	OBSERVER_SYSTEM,	/* nv_alloc_pages() for a client */
	OBSERVER_MANAGED,	/* nvidia-uvm's pages for a client */
	OBSERVER_METADATA,	/* the array of memory that a client registers */
	OBSERVER_DRIVER,	/* any of these for the driver itself */
};

/**
 * struct observer_failure - a request for which the driver had no memory
 * @time_ns: on the clock that counts from the machine's start
 * @bytes: what it would have taken
 * @available: what was available then; 0 where that isn't known
 * @tgid: in the initial pid namespace
 *
 * Where two tasks write one at the same time, it may have some of both.
 */
struct observer_failure {
	__u64 time_ns;
	__u64 bytes;
	__u64 available;
	__u32 tgid;
	__u32 unused;
	char comm[16];
};

/**
 * struct observer_account - what is counted for a cgroup other than the root; the key is its id
 * @parent: id of the account above; 0 for the root
 * @level: depth below the root
 * @offline: the cgroup was removed, and memory is held for it yet
 * @refs: of live records and of accounts below, and one while the cgroup is there
 * @failures: tries for which the driver had no memory
 * @failed: requests for which it had none in pages of any size
 * @newest: of @failed_local
 *
 * @local and @failed_local are without the cgroups below, the rest with them.
 */
struct observer_account {
	__u64 parent;
	__u32 level;
	__u32 offline;
	__u64 refs;
	__u64 usage;
	__u64 local;
	__u64 peak;
	__u64 charged;
	__u64 managed;
	__u64 metadata;
	__u64 pinned;
	__u64 allocs;
	__u64 frees;
	__u64 failures;
	__u64 failed;
	__u64 failed_local;
	__u64 alloc_time_ns;
	__u64 alloc_time_max_ns;
	struct observer_failure newest;
};

/**
 * struct observer_client_key - a process on an account
 * @start_ns: when it began, on the clock that counts from the machine's start
 * @account: id
 * @tgid: in the initial pid namespace; 0 for none
 */
struct observer_client_key {
	__u64 start_ns;
	__u64 account;
	__u32 tgid;
	__u32 unused;
};

struct observer_client {
	__u64 usage;
	__u64 peak;
	__u64 charged;
	__u64 managed;
	__u64 metadata;
	__u64 pinned;
	__u64 allocs;
	__u64 frees;
	__u64 records;
	char comm[16];
};

/**
 * struct observer_record - a live allocation; the key is the driver's handle
 * @client: the client that it counts for; no account if it is the driver's own
 * @bytes: with @metadata
 * @kind: enum observer_kind
 * @charged: the kernel's memory controller was charged
 */
struct observer_record {
	struct observer_client_key client;
	__u64 bytes;
	__u64 metadata;
	__u32 kind;
	__u32 charged;
};

/**
 * struct observer_totals - what there is one of
 * @version: OBSERVER_VERSION
 * @since_ns: when counting began, since the epoch
 * @nvidia_series: of the loaded nvidia.ko; 0 for none, or none that is known
 * @uvm_series: of the loaded nvidia-uvm.ko
 * @untracked_count: allocations that are in no account, for want of room or of a return
 * @missed_returns: calls whose return was never seen, as their task has begun another since
 * @nameless: allocations that count for their account and no process, for want of room
 * @root: the account of the root, which no hash has to be searched for
 */
struct observer_totals {
	__u32 version;
	__u32 unused;
	__u64 since_ns;
	__u32 nvidia_series;
	__u32 uvm_series;
	__u64 driver_usage;
	__u64 driver_peak;
	__u64 untracked;
	__u64 untracked_count;
	__u64 stale_count;
	__u64 records;
	__u64 missed_returns[OBSERVER_CALLS];
	__u64 nameless;
	struct observer_account root;
};

/**
 * struct observer_hook - a hooked function
 * @name: what it is for
 * @symbol: MODULE:FUNCTION
 * @event: of its entry in tracefs's kprobe_profile; that of its return ends in _ret
 * @skipped: hits of either before its program was there
 * @has_return: its return is hooked, too
 * @required: nothing is accounted without it
 * @error: why it could not be hooked, as an errno; 0 if it could
 */
struct observer_hook {
	char name[40];
	char symbol[64];
	char event[56];
	__u64 skipped[2];
	__u32 has_return;
	__u32 required;
	__u32 error;
	__u32 unused;
};

#endif /* UMACCT_OBSERVER_H */
