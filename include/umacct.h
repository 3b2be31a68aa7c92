/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The umacct generic netlink family: what the kernel module answers and takes.
 *
 * This header and docs/netlink/specs/umacct.yaml say the same thing; the test
 * "abi" compares them. Rules that every command follows:
 *
 *  - Bytes are u64, in bytes. Times are u64, in nanoseconds. UMACCT_UNLIMITED
 *    in a limit means "no limit" (userspace writes it as "max").
 *  - An account is a cgroup of the v2 hierarchy, named by its cgroup id: what
 *    name_to_handle_at() and the inode number of its directory give.
 *  - Counters are of the account's whole subtree unless they are called local.
 *  - Attributes are only ever added. A reader ignores what it doesn't know; a
 *    writer that sends what the module doesn't know gets -EINVAL and an
 *    extended ack that names the attribute, and nothing is changed.
 *  - Whoever lacks CAP_SYS_ADMIN in the initial user namespace sees the
 *    accounts of its own cgroup's subtree and the clients in it, and may change
 *    nothing. In the root of the v2 hierarchy, which is nobody's own, it sees
 *    none. Its status has versions, states and reasons; USAGE, CHARGED,
 *    MANAGED and METADATA of its own subtree; and no other number. The family answers in every
 *    network namespace.
 *
 * Commands:
 *
 *  STATUS_GET   do    -> one UMACCT_A_STATUS_* set
 *  ACCOUNT_GET  do    UMACCT_A_ACCOUNT_ID -> one UMACCT_A_ACCOUNT_* set
 *               dump  [UMACCT_A_ACCOUNT_ID: this account's subtree only]
 *                     -> parents before children
 *  ACCOUNT_SET  do    UMACCT_A_ACCOUNT_ID and any of SOFT, HARD, THROTTLE,
 *                     VIEW, CHARGE; the account need not hold memory
 *                     -> ID, DRIVER_STATE and, if nothing enforces what was
 *                     set, REASON: with DRIVER_ABSENT it will be when the
 *                     driver comes
 *  CLIENT_GET   dump  [UMACCT_A_CLIENT_ACCOUNT_ID: of this subtree only]
 *                     -> one UMACCT_A_CLIENT_* set per process and account
 *  CONFIG_SET   do    any of UMACCT_A_STATUS_RESERVE, _CHARGE_DEFAULT
 *                     -> DRIVER_STATE and REASON, as for ACCOUNT_SET
 *  RECLAIM      do    give back to the kernel what the driver's pools hold
 *                     -> RECLAIMED, and POOLS: what is left; -EOPNOTSUPP if it
 *                     isn't known how
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
	UMACCT_CMD_STATUS_GET = 1,
	UMACCT_CMD_ACCOUNT_GET,
	UMACCT_CMD_ACCOUNT_SET,
	UMACCT_CMD_CLIENT_GET,
	UMACCT_CMD_CONFIG_SET,
	UMACCT_CMD_EVENT_NTF,
	UMACCT_CMD_RECLAIM,

	__UMACCT_CMD_MAX,
	UMACCT_CMD_MAX = (__UMACCT_CMD_MAX - 1)
};

/* What the module knows of the loaded driver. */
enum umacct_driver_state {
	UMACCT_DRIVER_ABSENT,		/* nvidia.ko is not loaded */
	UMACCT_DRIVER_HOOKED,		/* every required hook is armed */
	UMACCT_DRIVER_UNKNOWN,		/* a version that isn't known: nothing is accounted */
	UMACCT_DRIVER_BROKEN,		/* no hook where one is required: nothing is accounted */
};

enum umacct_hook_state {
	UMACCT_HOOK_IDLE,		/* its module is not loaded */
	UMACCT_HOOK_ARMED,
	UMACCT_HOOK_OFF,		/* not needed: the feature it serves is off */
	UMACCT_HOOK_FAILED,		/* see UMACCT_A_HOOK_REASON */
};

/* UMACCT_A_STATUS_FLAGS */
enum umacct_status_flags {
	UMACCT_STATUS_MEMCG_V2		= 1 << 0,	/* the memory controller is on cgroup v2 */
	UMACCT_STATUS_KMEM		= 1 << 1,	/* the kernel accounts kernel memory */
	UMACCT_STATUS_NATIVE_CHARGE	= 1 << 2,	/* the driver charges its pages itself (615 and later) */
	UMACCT_STATUS_PAGE_POOLS	= 1 << 3,	/* the driver keeps freed pages in pools (590 and later) */
	UMACCT_STATUS_CHARGE_READY	= 1 << 4,	/* charging can be switched on */
	UMACCT_STATUS_VIEW_READY	= 1 << 5,	/* views can be switched on */
	UMACCT_STATUS_CGROUP_V2		= 1 << 6,	/* there are cgroups in the v2 hierarchy */
	UMACCT_STATUS_SELFTEST		= 1 << 7,	/* a probe on our own text fired just now */
	UMACCT_STATUS_UNENFORCED	= 1 << 8,	/* something is asked for that nothing enforces */
};

enum umacct_charge_mode {
	UMACCT_CHARGE_INHERIT,		/* as the nearest ancestor that says, else as the default */
	UMACCT_CHARGE_OFF,
	UMACCT_CHARGE_ON,
};

enum umacct_event_type {
	UMACCT_EVENT_SOFT_CROSSED = 1,	/* usage rose above the soft limit */
	UMACCT_EVENT_SOFT_RECOVERED,	/* usage fell back to the soft limit or below */
	UMACCT_EVENT_HARD_REFUSED,	/* an allocation was refused: hard limit */
	UMACCT_EVENT_RESERVE_REFUSED,	/* an allocation was refused: the machine's reserve */
};

enum {
	UMACCT_A_STATUS_UNSPEC,
	UMACCT_A_STATUS_PAD,
	UMACCT_A_STATUS_MODULE_VERSION,	/* string */
	UMACCT_A_STATUS_DRIVER_STATE,	/* u32, enum umacct_driver_state */
	UMACCT_A_STATUS_DRIVER_VERSION,	/* string, as the driver says it; absent with the driver */
	UMACCT_A_STATUS_UVM_STATE,	/* u32, enum umacct_driver_state, of nvidia-uvm */
	UMACCT_A_STATUS_REASON,		/* string: why nothing is accounted, or enforced, or what is doubtful */
	UMACCT_A_STATUS_FLAGS,		/* u32, enum umacct_status_flags */
	UMACCT_A_STATUS_USAGE,		/* u64, bytes held for all accounts */
	UMACCT_A_STATUS_CHARGED,	/* u64, part of USAGE that the kernel's memory controller sees */
	UMACCT_A_STATUS_DRIVER_USAGE,	/* u64, bytes the driver holds for itself, outside USAGE */
	UMACCT_A_STATUS_DRIVER_PEAK,	/* u64 */
	UMACCT_A_STATUS_MANAGED,	/* u64, part of USAGE that is managed (nvidia-uvm) memory */
	UMACCT_A_STATUS_UNTRACKED,	/* u64, bytes ever allocated that could not be recorded */
	UMACCT_A_STATUS_UNTRACKED_COUNT,/* u64, allocations that could not be recorded */
	UMACCT_A_STATUS_STALE_COUNT,	/* u64, records whose free was never seen, dropped */
	UMACCT_A_STATUS_ACCOUNTS,	/* u32 */
	UMACCT_A_STATUS_CLIENTS,	/* u32 */
	UMACCT_A_STATUS_RECORDS,	/* u32, live allocations */
	UMACCT_A_STATUS_RESERVE,	/* u64, bytes kept available; 0: off */
	UMACCT_A_STATUS_RESERVE_COUNT,	/* u64, allocations refused for the reserve */
	UMACCT_A_STATUS_CHARGE_DEFAULT,	/* u32, UMACCT_CHARGE_OFF or _ON */
	UMACCT_A_STATUS_EVENTS_SENT,	/* u64, sequence number of the newest event */
	UMACCT_A_STATUS_EVENTS_LOST,	/* u64, COUNTs that not all listeners were told */
	UMACCT_A_STATUS_HOOK,		/* nest, UMACCT_A_HOOK_*, one for each hook */
	UMACCT_A_STATUS_CHARGE_REASON,	/* string: why charging can't be switched on */
	UMACCT_A_STATUS_UNATTRIBUTED_COUNT, /* u64, refused: no memory to find out whose */
	UMACCT_A_STATUS_AVAILABLE,	/* u64, bytes: MemAvailable, less free CMA, and POOLS */
	UMACCT_A_STATUS_POOLS,		/* u64, freed bytes the driver keeps; absent if not known */
	UMACCT_A_STATUS_RECLAIMED,	/* u64, bytes; only RECLAIM answers it */
	UMACCT_A_STATUS_METADATA,	/* u64, part of USAGE that the drivers keep beside the pages */

	__UMACCT_A_STATUS_MAX,
	UMACCT_A_STATUS_MAX = (__UMACCT_A_STATUS_MAX - 1)
};

enum {
	UMACCT_A_HOOK_UNSPEC,
	UMACCT_A_HOOK_PAD,
	UMACCT_A_HOOK_NAME,		/* string: what it is for */
	UMACCT_A_HOOK_SYMBOL,		/* string, module:symbol */
	UMACCT_A_HOOK_STATE,		/* u32, enum umacct_hook_state */
	UMACCT_A_HOOK_REQUIRED,		/* flag: without it nothing is accounted */
	UMACCT_A_HOOK_REASON,		/* string, in plain words, when FAILED */
	UMACCT_A_HOOK_CALLS,		/* u64, calls seen since it was armed; absent if none */
	UMACCT_A_HOOK_MISSED,		/* u64, calls the kernel could not deliver; absent if none */

	__UMACCT_A_HOOK_MAX,
	UMACCT_A_HOOK_MAX = (__UMACCT_A_HOOK_MAX - 1)
};

enum {
	UMACCT_A_ACCOUNT_UNSPEC,
	UMACCT_A_ACCOUNT_PAD,
	UMACCT_A_ACCOUNT_ID,		/* u64, cgroup id */
	UMACCT_A_ACCOUNT_PARENT_ID,	/* u64; absent for the root */
	UMACCT_A_ACCOUNT_LEVEL,		/* u32; the root is 0 */
	UMACCT_A_ACCOUNT_PATH,		/* string, in the reader's cgroup namespace */
	UMACCT_A_ACCOUNT_USAGE,		/* u64, bytes */
	UMACCT_A_ACCOUNT_LOCAL,		/* u64, bytes: without the children */
	UMACCT_A_ACCOUNT_PEAK,		/* u64, bytes: highest USAGE ever */
	UMACCT_A_ACCOUNT_CHARGED,	/* u64, part of USAGE that the kernel's memory controller sees */
	UMACCT_A_ACCOUNT_MANAGED,	/* u64, part of USAGE that is managed (nvidia-uvm) memory */
	UMACCT_A_ACCOUNT_ALLOCS,	/* u64, successful allocations */
	UMACCT_A_ACCOUNT_FREES,		/* u64 */
	UMACCT_A_ACCOUNT_FAILURES,	/* u64, allocations that the driver itself failed */
	UMACCT_A_ACCOUNT_REFUSALS,	/* u64, allocations refused before the driver made them */
	UMACCT_A_ACCOUNT_CLIENTS,	/* u32, processes, of this account alone */
	UMACCT_A_ACCOUNT_SOFT,		/* u64, soft limit */
	UMACCT_A_ACCOUNT_HARD,		/* u64, hard limit */
	UMACCT_A_ACCOUNT_THROTTLE,	/* u64, ns: longest delay of one ioctl above SOFT; 0: none */
	UMACCT_A_ACCOUNT_VIEW,		/* u32, 1: /proc/meminfo and sysinfo tell what could be had */
	UMACCT_A_ACCOUNT_CHARGE,	/* u32, enum umacct_charge_mode, as set */
	UMACCT_A_ACCOUNT_CHARGE_EFFECTIVE, /* u32, UMACCT_CHARGE_OFF or _ON */
	UMACCT_A_ACCOUNT_EFFECTIVE,	/* u64, lowest hard limit from here to the root */
	UMACCT_A_ACCOUNT_EFFECTIVE_ID,	/* u64, account that sets EFFECTIVE, if any does */
	UMACCT_A_ACCOUNT_LOCAL_SOFT_COUNT,	/* u64, times this soft limit was crossed */
	UMACCT_A_ACCOUNT_LOCAL_HARD_COUNT,	/* u64, refusals by this hard limit */
	UMACCT_A_ACCOUNT_RESERVE_COUNT,	/* u64, refusals by the reserve */
	UMACCT_A_ACCOUNT_THROTTLED,	/* u64, ns that tasks were delayed */
	UMACCT_A_ACCOUNT_MEMORY_CURRENT,/* u64, the memory controller's; absent without one here */
	UMACCT_A_ACCOUNT_MEMORY_MAX,	/* u64, as MEMORY_CURRENT */
	UMACCT_A_ACCOUNT_DRIVER_STATE,	/* u32, as STATUS_DRIVER_STATE; only ACCOUNT_SET answers it */
	UMACCT_A_ACCOUNT_REASON,	/* string: why nothing enforces what was set */
	UMACCT_A_ACCOUNT_ALLOC_TIME,	/* u64, ns that tasks were in the driver's allocator, by ticks */
	UMACCT_A_ACCOUNT_ALLOC_TIME_MAX, /* u64, ns, the longest that one allocation took */
	UMACCT_A_ACCOUNT_METADATA,	/* u64, part of USAGE that the drivers keep beside the pages */

	__UMACCT_A_ACCOUNT_MAX,
	UMACCT_A_ACCOUNT_MAX = (__UMACCT_A_ACCOUNT_MAX - 1)
};

enum {
	UMACCT_A_CLIENT_UNSPEC,
	UMACCT_A_CLIENT_PAD,
	UMACCT_A_CLIENT_PID,		/* u32, in the reader's pid namespace; 0 if it has none there */
	UMACCT_A_CLIENT_START_TIME,	/* u64, ns since boot, as /proc/PID/stat counts */
	UMACCT_A_CLIENT_COMM,		/* string, at its newest allocation */
	UMACCT_A_CLIENT_ACCOUNT_ID,	/* u64 */
	UMACCT_A_CLIENT_PATH,		/* string, the account's */
	UMACCT_A_CLIENT_USAGE,		/* u64, bytes it allocated that are still held */
	UMACCT_A_CLIENT_PEAK,		/* u64 */
	UMACCT_A_CLIENT_CHARGED,	/* u64, part of USAGE */
	UMACCT_A_CLIENT_MANAGED,	/* u64, part of USAGE */
	UMACCT_A_CLIENT_ALLOCS,		/* u64 */
	UMACCT_A_CLIENT_FREES,		/* u64 */
	UMACCT_A_CLIENT_EXITED,		/* flag: it is gone, but what it allocated is held by others */
	UMACCT_A_CLIENT_METADATA,	/* u64, part of USAGE */

	__UMACCT_A_CLIENT_MAX,
	UMACCT_A_CLIENT_MAX = (__UMACCT_A_CLIENT_MAX - 1)
};

enum {
	UMACCT_A_EVENT_UNSPEC,
	UMACCT_A_EVENT_PAD,
	UMACCT_A_EVENT_TYPE,		/* u32, enum umacct_event_type */
	UMACCT_A_EVENT_SEQ,		/* u64, rises by one; a gap is what was lost */
	UMACCT_A_EVENT_TIME,		/* u64, ns since the epoch */
	UMACCT_A_EVENT_ACCOUNT_ID,	/* u64, of the task */
	UMACCT_A_EVENT_PATH,		/* string, the account's */
	UMACCT_A_EVENT_LIMIT_ID,	/* u64, account whose limit it was; absent for the reserve */
	UMACCT_A_EVENT_LIMIT_PATH,	/* string */
	UMACCT_A_EVENT_PID,		/* u32, in the initial pid namespace */
	UMACCT_A_EVENT_COMM,		/* string */
	UMACCT_A_EVENT_SIZE,		/* u64, bytes asked for (or freed) */
	UMACCT_A_EVENT_USAGE,		/* u64, bytes held by the limit's account; what is available for the reserve */
	UMACCT_A_EVENT_LIMIT,		/* u64, bytes */
	UMACCT_A_EVENT_COUNT,		/* u64, how often since it was told last; the rest is of the newest */

	__UMACCT_A_EVENT_MAX,
	UMACCT_A_EVENT_MAX = (__UMACCT_A_EVENT_MAX - 1)
};

#endif /* _UAPI_UMACCT_H */
