/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The umacct generic netlink family: what the kernel module answers and takes.
 *
 * What stands between "generated" is made by "make generate" from
 * docs/netlink/umacct.yaml: do not edit it. Rules that every command follows:
 *
 *  - Bytes are u64, in bytes. Times are u64, in nanoseconds. UMACCT_UNLIMITED
 *    in a limit means "no limit" (userspace writes it as "max").
 *  - An account is a cgroup of the v2 hierarchy, named by its cgroup id: what
 *    name_to_handle_at() and the inode number of its directory give.
 *  - Counters are of the account's whole subtree unless they are called local.
 *  - Attributes are only ever added. A reader ignores what it doesn't know; a
 *    writer that sends what the module doesn't know gets -EINVAL and an
 *    extended ack that names the attribute, and nothing is changed.
 *  - CAP_SYS_ADMIN in the initial user namespace sees and may change all;
 *    CAP_DAC_READ_SEARCH there sees all. Others see the accounts and clients of
 *    their own cgroup's subtree, and in the root of the v2 hierarchy, which is
 *    no tenant's, none. Their status has versions, states and reasons; USAGE,
 *    CHARGED, MANAGED and METADATA of that subtree; and no other number. The
 *    family answers in every network namespace.
 *  - A view changes what /proc/meminfo says. MEMORY_* of a status are the
 *    machine's own figures, whatever view the caller has: decisions about the
 *    machine's memory go by them.
 *
 * Commands:
 *
 *  STATUS_GET   do    -> one UMACCT_A_STATUS_* set
 *  ACCOUNT_GET  do    UMACCT_A_ACCOUNT_ID -> one UMACCT_A_ACCOUNT_* set
 *               dump  [UMACCT_A_ACCOUNT_ID: this account's subtree only]
 *                     -> parents before children
 *  ACCOUNT_SET  do    UMACCT_A_ACCOUNT_ID and any of SOFT, HARD, THROTTLE,
 *                     KEEP, VIEW, CHARGE: all of them or nothing is set; the
 *                     account need not hold memory
 *                     -> ID, DRIVER_STATE and, if nothing enforces what was
 *                     set, REASON: with DRIVER_ABSENT it takes effect once the
 *                     driver is loaded
 *  CLIENT_GET   dump  [UMACCT_A_CLIENT_ACCOUNT_ID: of this subtree only]
 *                     -> one UMACCT_A_CLIENT_* set per process and account
 *  CONFIG_SET   do    any of UMACCT_A_STATUS_RESERVE, _CHARGE_DEFAULT
 *                     -> DRIVER_STATE and REASON, as for ACCOUNT_SET
 *  RECLAIM      do    give back to the kernel what the driver's pools hold
 *                     -> RECLAIMED, and POOLS: what is left; -EOPNOTSUPP if
 *                     the driver's pools were not found
 *  EVENT_NTF    sent to the multicast group "events" of the initial network
 *               namespace (joining takes CAP_NET_ADMIN)
 */
#ifndef _UAPI_UMACCT_H
#define _UAPI_UMACCT_H

#define UMACCT_FAMILY_NAME	"umacct"
#define UMACCT_FAMILY_VERSION	1
#define UMACCT_MCGRP_EVENTS	"events"

/* "No limit", in every limit. */
#define UMACCT_UNLIMITED	(~0ULL)

enum umacct_cmd {
/* generated commands: begin */
	UMACCT_CMD_STATUS_GET = 1,
	UMACCT_CMD_ACCOUNT_GET,
	UMACCT_CMD_ACCOUNT_SET,
	UMACCT_CMD_CLIENT_GET,
	UMACCT_CMD_CONFIG_SET,
	UMACCT_CMD_EVENT_NTF,
	UMACCT_CMD_RECLAIM,
/* generated commands: end */

	__UMACCT_CMD_MAX,
	UMACCT_CMD_MAX = (__UMACCT_CMD_MAX - 1)
};

/* generated values: begin */
/* State of the loaded driver */
enum umacct_driver_state {
	UMACCT_DRIVER_ABSENT,		/* nvidia.ko is not loaded */
	UMACCT_DRIVER_HOOKED,		/* every required hook is armed */
	UMACCT_DRIVER_UNKNOWN,		/* a version that isn't known: nothing is accounted */
	/* a required hook could not be armed: nothing is accounted */
	UMACCT_DRIVER_BROKEN,
};

/* State of a hook */
enum umacct_hook_state {
	UMACCT_HOOK_IDLE,		/* its module is not loaded */
	UMACCT_HOOK_ARMED,		/* it sees every call */
	UMACCT_HOOK_OFF,		/* not needed: the feature it serves is off */
	UMACCT_HOOK_FAILED,		/* see UMACCT_A_HOOK_REASON */
};

/* UMACCT_A_STATUS_FLAGS */
enum umacct_status_flags {
	UMACCT_STATUS_MEMCG_V2 = 1 << 0,	/* the memory controller is on cgroup v2 */
	/* the kernel accounts kernel memory (no cgroup.memory=nokmem) */
	UMACCT_STATUS_KMEM = 1 << 1,
	/* the driver charges its pages itself (615 and later) */
	UMACCT_STATUS_NATIVE_CHARGE = 1 << 2,
	/* the driver keeps freed pages in pools (590 and later) */
	UMACCT_STATUS_PAGE_POOLS = 1 << 3,
	UMACCT_STATUS_CHARGE_READY = 1 << 4,	/* charging can be switched on */
	UMACCT_STATUS_VIEW_READY = 1 << 5,	/* views can be switched on */
	UMACCT_STATUS_CGROUP_V2 = 1 << 6,	/* there are cgroups in the v2 hierarchy */
	/* a probe on the module's own text fired just now */
	UMACCT_STATUS_SELFTEST = 1 << 7,
	/*
	 * a hard limit, a guarantee, a throttle, the reserve or charging is set and a driver is
	 * loaded, but nothing enforces it
	 */
	UMACCT_STATUS_UNENFORCED = 1 << 8,
	/* BPF programs answer instead of the module, see docs/observer.md */
	UMACCT_STATUS_OBSERVER = 1 << 9,
};

/* Whether the kernel's memory controller is charged */
enum umacct_charge_mode {
	/* inherited from the nearest ancestor that sets it, else the default */
	UMACCT_CHARGE_INHERIT,
	UMACCT_CHARGE_OFF,		/* not charged */
	UMACCT_CHARGE_ON,		/* charged */
};

/* Type of an event */
enum umacct_event_type {
	UMACCT_EVENT_SOFT_CROSSED = 1,	/* usage rose above the soft limit */
	UMACCT_EVENT_SOFT_RECOVERED,	/* usage fell back to the soft limit or below */
	UMACCT_EVENT_HARD_REFUSED,	/* an allocation was refused: hard limit */
	UMACCT_EVENT_RESERVE_REFUSED,	/* an allocation was refused: the machine's reserve */
	/* the driver had no memory for a request, though no limit refused it */
	UMACCT_EVENT_FAILED,
};

enum {
	UMACCT_A_STATUS_UNSPEC,
	UMACCT_A_STATUS_PAD,
	UMACCT_A_STATUS_MODULE_VERSION,	/* string: the module's version */
	UMACCT_A_STATUS_DRIVER_STATE,	/* u32, enum umacct_driver_state: state of the driver */
	/* string: version of the driver; absent without a driver */
	UMACCT_A_STATUS_DRIVER_VERSION,
	UMACCT_A_STATUS_UVM_STATE,	/* u32, enum umacct_driver_state: state of nvidia-uvm */
	/*
	 * string: why the driver is not hooked, why nothing is enforced, or what is doubtful;
	 * absent if there is none
	 */
	UMACCT_A_STATUS_REASON,
	/* u32, enum umacct_status_flags: capabilities of the module and the kernel */
	UMACCT_A_STATUS_FLAGS,
	/* u64, bytes: memory that the driver took for all accounts */
	UMACCT_A_STATUS_USAGE,
	/* u64, bytes: the part of usage that the kernel's memory controller is charged for */
	UMACCT_A_STATUS_CHARGED,
	/* u64, bytes: memory that the driver took for itself, outside usage */
	UMACCT_A_STATUS_DRIVER_USAGE,
	UMACCT_A_STATUS_DRIVER_PEAK,	/* u64, bytes: the highest driver usage so far */
	/* u64, bytes: the part of usage that is nvidia-uvm's pages, managed memory */
	UMACCT_A_STATUS_MANAGED,
	/* u64, bytes: memory of allocations that could not be recorded */
	UMACCT_A_STATUS_UNTRACKED,
	UMACCT_A_STATUS_UNTRACKED_COUNT,	/* u64: allocations that could not be recorded */
	/* u64: records that were dropped because their free was never seen */
	UMACCT_A_STATUS_STALE_COUNT,
	UMACCT_A_STATUS_ACCOUNTS,	/* u32: cgroups with an account */
	UMACCT_A_STATUS_CLIENTS,	/* u32: processes that hold memory, or held some */
	/* u32: live allocations; absent to a reader that may not see all */
	UMACCT_A_STATUS_RECORDS,
	/* u64, bytes: memory that allocations must leave available; 0 for none */
	UMACCT_A_STATUS_RESERVE,
	UMACCT_A_STATUS_RESERVE_COUNT,	/* u64: allocations refused for the reserve */
	/*
	 * u32, enum umacct_charge_mode: charging of cgroups that neither set nor inherit it:
	 * UMACCT_CHARGE_OFF or _ON
	 */
	UMACCT_A_STATUS_CHARGE_DEFAULT,
	UMACCT_A_STATUS_EVENTS_SENT,	/* u64: sequence number of the newest event */
	/* u64: events that could not be sent or that a listener had no room for */
	UMACCT_A_STATUS_EVENTS_LOST,
	UMACCT_A_STATUS_HOOK,		/* nest, UMACCT_A_HOOK_*: one for each hook */
	/* string: why charging can't be switched on; absent where it can */
	UMACCT_A_STATUS_CHARGE_REASON,
	/* u64: allocations refused because memory ran out while their account was looked for */
	UMACCT_A_STATUS_UNATTRIBUTED_COUNT,
	/*
	 * u64, bytes: memory that the driver could take: MemAvailable and the driver's pools,
	 * without CMA areas and page cache that memory.min protects
	 */
	UMACCT_A_STATUS_AVAILABLE,
	/* u64, bytes: freed memory that the driver keeps in its pools; absent if not known */
	UMACCT_A_STATUS_POOLS,
	/* u64, bytes: memory given back to the kernel; only UMACCT_CMD_RECLAIM answers it */
	UMACCT_A_STATUS_RECLAIMED,
	/*
	 * u64, bytes: the part of usage that is the drivers' metadata: for pages, objects,
	 * clients, open files, VA spaces and address ranges
	 */
	UMACCT_A_STATUS_METADATA,
	/* u64, bytes: MemTotal, as no view changes it; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_TOTAL,
	/* u64, bytes: MemFree; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_FREE,
	/* u64, bytes: MemAvailable; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_AVAILABLE,
	/* u64, bytes: Buffers; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_BUFFERS,
	/* u64, bytes: Cached; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_CACHED,
	/* u64, bytes: SReclaimable; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_SRECLAIMABLE,
	/* u64, bytes: KReclaimable; absent to a reader that may not see all */
	UMACCT_A_STATUS_MEMORY_KRECLAIMABLE,
	/* u64, bytes: the part of the available memory that guarantees keep */
	UMACCT_A_STATUS_KEPT,
	/*
	 * u64, ns: time at which the observer began to count, since the epoch: earlier memory is
	 * in no account; absent where the module answers
	 */
	UMACCT_A_STATUS_SINCE,

	__UMACCT_A_STATUS_MAX,
	UMACCT_A_STATUS_MAX = (__UMACCT_A_STATUS_MAX - 1)
};

enum {
	UMACCT_A_HOOK_UNSPEC,
	UMACCT_A_HOOK_PAD,
	UMACCT_A_HOOK_NAME,		/* string: purpose of the hook */
	UMACCT_A_HOOK_SYMBOL,		/* string: module:symbol */
	UMACCT_A_HOOK_STATE,		/* u32, enum umacct_hook_state: its state */
	UMACCT_A_HOOK_REQUIRED,		/* flag: nothing is accounted unless it is armed */
	/* string: why it failed, in plain words; absent unless it failed */
	UMACCT_A_HOOK_REASON,
	/*
	 * u64: calls seen since the module was loaded, or the observer began to count; absent to a
	 * reader that may not see all
	 */
	UMACCT_A_HOOK_CALLS,
	/*
	 * u64: calls that the kernel could not deliver; absent if none, and to a reader that may
	 * not see all
	 */
	UMACCT_A_HOOK_MISSED,

	__UMACCT_A_HOOK_MAX,
	UMACCT_A_HOOK_MAX = (__UMACCT_A_HOOK_MAX - 1)
};

enum {
	UMACCT_A_ACCOUNT_UNSPEC,
	UMACCT_A_ACCOUNT_PAD,
	UMACCT_A_ACCOUNT_ID,		/* u64: the cgroup's id */
	UMACCT_A_ACCOUNT_PARENT_ID,	/* u64: the parent's id; absent for the root */
	UMACCT_A_ACCOUNT_LEVEL,		/* u32: depth below the root */
	UMACCT_A_ACCOUNT_PATH,		/* string: the cgroup, in the reader's cgroup namespace */
	UMACCT_A_ACCOUNT_USAGE,		/* u64, bytes: memory taken through the driver */
	/* u64, bytes: the part of usage, without the cgroups below */
	UMACCT_A_ACCOUNT_LOCAL,
	UMACCT_A_ACCOUNT_PEAK,		/* u64, bytes: the highest usage so far */
	/* u64, bytes: the part of usage that the kernel's memory controller is charged for */
	UMACCT_A_ACCOUNT_CHARGED,
	/* u64, bytes: the part of usage that is nvidia-uvm's pages, managed memory */
	UMACCT_A_ACCOUNT_MANAGED,
	/* u64: allocations by nvidia.ko's page allocator; managed memory is not counted */
	UMACCT_A_ACCOUNT_ALLOCS,
	UMACCT_A_ACCOUNT_FREES,		/* u64: frees of such allocations */
	/* u64: calls of nvidia.ko's page allocator that failed; each try of a request counts */
	UMACCT_A_ACCOUNT_FAILURES,
	UMACCT_A_ACCOUNT_REFUSALS,	/* u64: allocations that umacct refused */
	/* u32: processes that hold memory, or held some, without the cgroups below */
	UMACCT_A_ACCOUNT_CLIENTS,
	UMACCT_A_ACCOUNT_SOFT,		/* u64, bytes: soft limit: an event is sent above it */
	/* u64, bytes: hard limit: an allocation that would exceed it is refused */
	UMACCT_A_ACCOUNT_HARD,
	/* u64, ns: longest delay of one system call above the soft limit; 0 for none */
	UMACCT_A_ACCOUNT_THROTTLE,
	/*
	 * u32, 0 or 1: whether /proc/meminfo and sysinfo report the memory that its tasks could
	 * have
	 */
	UMACCT_A_ACCOUNT_VIEW,
	/* u32, enum umacct_charge_mode: charging as set on this cgroup */
	UMACCT_A_ACCOUNT_CHARGE,
	/*
	 * u32, enum umacct_charge_mode: charging that is in force, by this setting, the ancestors
	 * and the default
	 */
	UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE,
	/* u64, bytes: the lowest hard limit from here to the root */
	UMACCT_A_ACCOUNT_EFFECTIVE,
	/* u64: the account that has this limit; absent without one */
	UMACCT_A_ACCOUNT_EFFECTIVE_ID,
	/* u64: times that this soft limit was crossed, without the cgroups below */
	UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT,
	/* u64: allocations that this hard limit refused, without the cgroups below */
	UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT,
	UMACCT_A_ACCOUNT_RESERVE_COUNT,	/* u64: allocations refused for the reserve */
	/* u64, ns: time that tasks were delayed above the soft limit */
	UMACCT_A_ACCOUNT_THROTTLED,
	/* u64, bytes: memory.current of the cgroup; absent without a memory controller here */
	UMACCT_A_ACCOUNT_MEMORY_CURRENT,
	/*
	 * u64, bytes: memory.max of the cgroup; UMACCT_UNLIMITED for none; absent without a memory
	 * controller here
	 */
	UMACCT_A_ACCOUNT_MEMORY_MAX,
	/*
	 * u32, enum umacct_driver_state: state of the driver; only UMACCT_CMD_ACCOUNT_SET answers
	 * it
	 */
	UMACCT_A_ACCOUNT_DRIVER_STATE,
	/* string: why nothing enforces the settings; only UMACCT_CMD_ACCOUNT_SET answers it */
	UMACCT_A_ACCOUNT_REASON,
	/* u64, ns: time that tasks spent in nvidia.ko's page allocator, measured in timer ticks */
	UMACCT_A_ACCOUNT_ALLOC_TIME,
	/* u64, ns: the longest time that one allocation by nvidia.ko's page allocator took */
	UMACCT_A_ACCOUNT_ALLOC_TIME_MAX,
	/*
	 * u64, bytes: the part of usage that is the drivers' metadata: for pages, objects,
	 * clients, open files, VA spaces and address ranges
	 */
	UMACCT_A_ACCOUNT_METADATA,
	/*
	 * u64, bytes: guarantee: the unused part of it is refused to all other cgroups; 0 for none
	 */
	UMACCT_A_ACCOUNT_KEEP,
	/* u64: requests for which the driver had no memory, in pages of any size */
	UMACCT_A_ACCOUNT_FAILED,
	/*
	 * u64, bytes: programs' own memory that is registered with the driver, and stays where it
	 * is: no part of usage
	 */
	UMACCT_A_ACCOUNT_PINNED,

	__UMACCT_A_ACCOUNT_MAX,
	UMACCT_A_ACCOUNT_MAX = (__UMACCT_A_ACCOUNT_MAX - 1)
};

enum {
	UMACCT_A_CLIENT_UNSPEC,
	UMACCT_A_CLIENT_PAD,
	/* u32: the process, in the reader's pid namespace; 0 if it has no pid there */
	UMACCT_A_CLIENT_PID,
	/*
	 * u64, ns: start of the process, since the machine's start, by the clock of /proc/PID/stat
	 */
	UMACCT_A_CLIENT_START_TIME,
	UMACCT_A_CLIENT_COMM,		/* string: its name at its newest allocation */
	UMACCT_A_CLIENT_ACCOUNT_ID,	/* u64: the account's id */
	UMACCT_A_CLIENT_PATH,		/* string: the account's cgroup */
	/* u64, bytes: memory that it took and that is still held */
	UMACCT_A_CLIENT_USAGE,
	UMACCT_A_CLIENT_PEAK,		/* u64, bytes: the highest usage so far */
	/* u64, bytes: the part of usage that the kernel's memory controller is charged for */
	UMACCT_A_CLIENT_CHARGED,
	/* u64, bytes: the part of usage that is nvidia-uvm's pages, managed memory */
	UMACCT_A_CLIENT_MANAGED,
	/* u64: allocations by nvidia.ko's page allocator; managed memory is not counted */
	UMACCT_A_CLIENT_ALLOCS,
	UMACCT_A_CLIENT_FREES,		/* u64: frees of such allocations */
	/* flag: the process is gone, but others hold what it allocated */
	UMACCT_A_CLIENT_EXITED,
	/*
	 * u64, bytes: the part of usage that is the drivers' metadata: for pages, objects,
	 * clients, open files, VA spaces and address ranges
	 */
	UMACCT_A_CLIENT_METADATA,
	UMACCT_A_CLIENT_RECORDS,	/* u32: live allocations */
	/* flag: the process is exiting, and its memory is still coming back */
	UMACCT_A_CLIENT_EXITING,
	/*
	 * u64, bytes: programs' own memory that is registered with the driver, and stays where it
	 * is: no part of usage
	 */
	UMACCT_A_CLIENT_PINNED,

	__UMACCT_A_CLIENT_MAX,
	UMACCT_A_CLIENT_MAX = (__UMACCT_A_CLIENT_MAX - 1)
};

enum {
	UMACCT_A_EVENT_UNSPEC,
	UMACCT_A_EVENT_PAD,
	UMACCT_A_EVENT_TYPE,		/* u32, enum umacct_event_type: type of the event */
	/* u64: sequence number: rises by one with each event, so a gap counts the lost ones */
	UMACCT_A_EVENT_SEQ,
	UMACCT_A_EVENT_TIME,		/* u64, ns: time of the event, since the epoch */
	UMACCT_A_EVENT_ACCOUNT_ID,	/* u64: the task's account */
	UMACCT_A_EVENT_PATH,		/* string: the task's cgroup */
	/* u64: the account whose limit it was; absent for the reserve and where there was none */
	UMACCT_A_EVENT_LIMIT_ID,
	/*
	 * string: cgroup of the account whose limit it was; absent for the reserve and where there
	 * was none
	 */
	UMACCT_A_EVENT_LIMIT_PATH,
	UMACCT_A_EVENT_PID,		/* u32: the process, in the initial pid namespace */
	UMACCT_A_EVENT_COMM,		/* string: its name */
	UMACCT_A_EVENT_SIZE,		/* u64, bytes: size of the allocation or the free */
	/*
	 * u64, bytes: usage of the limit's account; for the reserve and a failure, memory that was
	 * available
	 */
	UMACCT_A_EVENT_USAGE,
	/* u64, bytes: the limit or the reserve; 0 where there was none */
	UMACCT_A_EVENT_LIMIT,
	/* u64: how often it happened since the event before; all else is about the newest time */
	UMACCT_A_EVENT_COUNT,

	__UMACCT_A_EVENT_MAX,
	UMACCT_A_EVENT_MAX = (__UMACCT_A_EVENT_MAX - 1)
};

/* The largest UMACCT_A_ACCOUNT_THROTTLE. */
#define UMACCT_THROTTLE_MAX_NS	2000000000ULL
/* generated values: end */

#endif /* _UAPI_UMACCT_H */
