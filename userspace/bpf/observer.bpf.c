// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who takes memory through NVIDIA's driver, where the kernel module can't be loaded. The same
 * functions of the driver's are hooked, by kprobes, and the same is counted: see kmod/hooks/
 * and kmod/ledger/. Nothing is limited here, and the driver is never in the way of an error.
 *
 * There is no lock that a program may take. Sums are kept by atomic operations, an account
 * before its record and the record before nobody; so an account is right at any time when
 * nothing is under way, and a reader may find one row a moment older than another.
 *
 * An account lives as long as its cgroup, and after that as long as memory is held for it or
 * for one below it. What it holds then is its nearest online ancestor's, as readers see it.
 */
#include "kernel.h"

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "hooks/bounds.h"
#include "hooks/driver_versions.h"
#include "hooks/nv_status.h"
#include "observer.h"

char LICENSE[] SEC("license") = "GPL";

/* UVM_CPU_CHUNK_ALLOC_FLAGS_ACCOUNT */
#define CHUNK_FLAGS_ACCOUNT	2

/* The release function gets the address of the chunk's reference count; see kmod/hooks/managed.c */
#define CHUNK_ALIGN		8

/* So many tasks may raise one peak at the same moment. */
#define PEAK_TRIES		8

/* uvm_mem_alloc_params_t */
struct uvm_mem_params {
	__u64 backing_gpu;
	__u64 dma_owner;
	__u64 size;
	__u64 mm;
};

/*
 * The memory of this map, 4 MiB, is allocated when the observer begins. A cgroup whose ancestors
 * have no accounts needs one for each level at once. Where interrupts are off meanwhile, as on arm64,
 * the kernel's allocator for BPF can't get more than the few dozen that it keeps free.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBSERVER_ACCOUNTS);
	__type(key, __u64);
	__type(value, struct observer_account);
} accounts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBSERVER_CLIENTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct observer_client_key);
	__type(value, struct observer_client);
} clients SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBSERVER_RECORDS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct observer_record);
} records SEC(".maps");

/**
 * struct observer_call - between the entry of a function and its return
 * @bytes: with @metadata
 * @out: where the driver puts the handle
 * @at: the handle, or the object that the call is about, where it is known before it returns
 * @apart: added to the handle, where the address is another record's, too
 * @array: of a range of managed memory: the array that it has, where that is large
 * @shortened: likewise: the array that is left to @from, which it is split off
 * @from: likewise; of a VA space its mapping, of a block from vmalloc() the function that asks for
 *	it, 0 where it is in nvidia_code
 * @kind: enum observer_kind
 * @managed: it makes a range of managed memory
 * @block: how many pages each block of a request has
 */
struct observer_call {
	__u64 bytes;
	__u64 metadata;
	__u64 out;
	__u64 at;
	__u64 apart;
	__u64 began_ns;
	__u64 array;
	__u64 shortened;
	__u64 from;
	__u32 kind;
	__u32 block;
	__u8 uvm;
	__u8 charged;
	__u8 managed;
	__u8 unused[5];
};

/**
 * struct last_failure - a request of a task's for which the driver had no memory
 * @account: id, which it counts for
 * @pages: how many it was for, in whole blocks; 0 if there is none
 * @block: how many pages each block has
 */
struct last_failure {
	__u64 account;
	__u64 time_ns;
	__u64 pages;
	__u64 block;
};

/*
 * What a task is doing in the driver, and goes with it. It is the task's alone: no other one looks.
 * @lot: a lot of groups of ranges that is being counted, for which the stack has no room
 * @under_way: a bit for each enum observer_call_of
 * @resizes: it is resizing a block, which @resizing was the record of before
 * @starts: how often it is within what brings an adapter up, sets a GPU up for managed memory or
 *	loads a driver
 */
struct doing {
	struct observer_call calls[OBSERVER_CALL_KINDS];
	struct observer_call lot;
	struct observer_record resizing;
	struct last_failure failure;
	__u32 under_way;
	__u32 resizes;
	__u32 starts;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct doing);
} tasks SEC(".maps");

/* nvidia-uvm's VA spaces by their address. */
struct space {
	__u64 mapping;
	__u64 tree;
	__u32 groups;
	__u32 ranges;
	__u32 group_lots;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBSERVER_SPACES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct space);
} spaces SEC(".maps");

/* The same by the mapping of their open file, which has one of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBSERVER_SPACES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
} mappings SEC(".maps");

/* How many clients of the resource manager a process has, by the driver's reference to it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OBSERVER_CLIENTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} made SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct observer_totals);
} totals SEC(".maps");

/* For readers alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OBSERVER_HOOKS);
	__type(key, __u32);
	__type(value, struct observer_hook);
} hooks SEC(".maps");

/*
 * How often the program ran for each hook: first those at entries, then those at returns. The
 * kernel counts the hits of each, and leaves out the program where another one runs on the
 * processor just then. So a reader knows how many calls were not seen.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * OBSERVER_HOOKS);
	__type(key, __u32);
	__type(value, __u64);
} runs SEC(".maps");

/*
 * What there is no room for on the stack: the ids of a cgroup's ancestors by level, and an account
 * that is being made. Its other members stay 0.
 */
struct chain {
	__u64 ids[OBSERVER_LEVEL_MAX + 1];
	struct observer_account fresh;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain);
} chains SEC(".maps");

static const struct series known_series[] = KNOWN_SERIES;

/* What is known of nvidia.ko and of nvidia-uvm.ko; without layouts where nothing is. */
struct series drivers[2];

/* Where all that may call __vmalloc() is in nvidia.ko: os_alloc_mem() alone does. 0 if not known. */
__u64 nvidia_code;
__u64 nvidia_code_size;

/* No function is longer. */
#define FUNCTION_SIZE		4096

/*
 * Of a function that isn't static the verifier looks at the code once; of one that is, again at each
 * place that calls it, in each program.
 */
#define APART_VERIFIED __noinline

/* Of the kernel's pages. */
const volatile __u32 page_shift;

/* --- small things ------------------------------------------------------------- */

static __always_inline struct observer_totals *all(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

static __always_inline void add(__u64 *to, __u64 value)
{
	__sync_fetch_and_add(to, value);
}

static __always_inline void raise(__u64 *peak, __u64 value)
{
	__u64 old;
	int i;

	for (i = 0; i < PEAK_TRIES; i++) {
		old = *(volatile __u64 *)peak;
		if (old >= value || __sync_val_compare_and_swap(peak, old, value) == old)
			return;
	}
}

static __always_inline __u64 power_of_two(__u64 n)
{
	if (n <= 1)
		return 1;
	n--;
	n |= n >> 1;
	n |= n >> 2;
	n |= n >> 4;
	n |= n >> 8;
	n |= n >> 16;
	n |= n >> 32;
	return n + 1;
}

/* Members of it, and of what it points to, are read without a helper. */
static __always_inline struct task_struct *current(void)
{
	return bpf_get_current_task_btf();
}

/* NULL for a driver that isn't known. */
static __always_inline const struct series *driver(bool uvm)
{
	const struct series *series = &drivers[uvm];

	if (!series->layouts)
		return NULL;
	/* Else the compiler may compute the pointer again, which the verifier of 6.1 takes for NULL. */
	barrier_var(series);
	return series;
}

/* No other program of its kind runs on this processor meanwhile. */
static __always_inline void ran(void *ctx)
{
	__u32 place = bpf_get_attach_cookie(ctx);
	__u64 *count = bpf_map_lookup_elem(&runs, &place);

	if (count)
		++*count;
}

static __always_inline void untracked(__u64 bytes)
{
	struct observer_totals *t = all();

	if (!t)
		return;
	add(&t->untracked, bytes);
	add(&t->untracked_count, 1);
}

/* --- accounts ----------------------------------------------------------------- */

static __always_inline struct observer_account *account_at(__u64 id)
{
	struct observer_totals *t;

	if (id != OBSERVER_ROOT_ID)
		return bpf_map_lookup_elem(&accounts, &id);
	t = all();
	return t ? &t->root : NULL;
}

static __always_inline bool is_online(struct cgroup *cgrp)
{
	return BPF_CORE_READ(cgrp, self.flags) & CSS_ONLINE;
}

static __always_inline struct cgroup *parent_of(struct cgroup *cgrp)
{
	return BPF_CORE_READ(cgrp, self.parent, cgroup);
}

/* The deepest that may have an account: a tenant's cgroups may be any number of levels deep. */
static __always_inline struct cgroup *not_too_deep(struct cgroup *cgrp)
{
	struct cgroup **ancestors = __builtin_preserve_access_index(&cgrp->ancestors[0]);
	struct cgroup *found = NULL;

	if (BPF_CORE_READ(cgrp, level) <= OBSERVER_LEVEL_MAX)
		return cgrp;
	bpf_probe_read_kernel(&found, sizeof(found), ancestors + OBSERVER_LEVEL_MAX);
	return found;
}

static __always_inline struct mem_cgroup *active_memcg(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct task_struct, active_memcg))
		return NULL;
	return task->active_memcg;
}

/* NULL without the memory controller. */
static __always_inline struct mem_cgroup *memcg_of(struct task_struct *task)
{
	const __u32 index = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	void *css = NULL;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return NULL;
	bpf_probe_read_kernel(&css, sizeof(css),
			      (void *)set + bpf_core_field_offset(struct css_set, subsys) +
			      index * sizeof(css));
	return css ? css - bpf_core_field_offset(struct mem_cgroup, css) : NULL;
}

static long put_one(__u32 index __attribute__((unused)), __u64 *id)
{
	struct observer_account *account = account_at(*id);
	__u64 parent;

	if (!account || __sync_fetch_and_add(&account->refs, -1ULL) != 1)
		return 1;
	parent = account->parent;
	bpf_map_delete_elem(&accounts, id);
	*id = parent;
	return !parent;
}

/* Gives up a reference; what nobody needs goes, and with it those above that only it kept. */
static __always_inline void account_put(__u64 id)
{
	bpf_loop(OBSERVER_LEVEL_MAX + 1, put_one, &id, 0);
}

static __always_inline void account_offline(struct observer_account *account, __u64 id)
{
	if (__sync_lock_test_and_set(&account->offline, 1) == 0)
		account_put(id);
}

/* Makes the account of one cgroup whose parent has one. */
static __always_inline bool account_make(struct observer_account *fresh, __u64 id, __u64 parent,
					 __u32 level)
{
	struct observer_account *above;

	fresh->parent = parent;
	fresh->level = level;
	fresh->refs = 1;
	if (bpf_map_update_elem(&accounts, &id, fresh, BPF_NOEXIST))
		return bpf_map_lookup_elem(&accounts, &id);
	above = account_at(parent);
	if (above)
		add(&above->refs, 1);
	return true;
}

/* The way from a cgroup up to the root, and down again. */
struct way {
	struct cgroup *at;
	__u64 id;
	__u32 level;
	__u32 failed;
};

static __always_inline struct chain *this_chain(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&chains, &zero);
}

static long find_online(__u32 index __attribute__((unused)), struct way *way)
{
	struct cgroup *cgrp = way->at;

	if (is_online(cgrp))
		return 1;
	way->at = parent_of(cgrp);
	return !way->at;
}

static long note_id(__u32 index, struct way *way)
{
	const __u32 level = way->level - index;
	struct cgroup *cgrp = way->at;
	struct chain *chain = this_chain();

	if (level > OBSERVER_LEVEL_MAX || !cgrp || !chain)
		return 1;
	chain->ids[level] = BPF_CORE_READ(cgrp, kn, id);
	way->at = parent_of(cgrp);
	return 0;
}

static long make_one(__u32 index, struct way *way)
{
	struct chain *chain = this_chain();
	__u64 id;

	if (index > way->level || index > OBSERVER_LEVEL_MAX || !chain)
		return 1;
	id = chain->ids[index];
	if (!account_at(id) && !account_make(&chain->fresh, id, way->id, index)) {
		way->failed = 1;
		return 1;
	}
	way->id = id;
	return 0;
}

/* The id of the account that counts what is taken in a cgroup, made if need be; 0 without room. */
static __noinline __u64 account_of(struct cgroup *cgrp)
{
	struct observer_account *account;
	struct way way = { 0 };
	__u64 id;

	if (!cgrp)
		return 0;
	way.at = not_too_deep(cgrp);
	if (!way.at)
		return 0;
	/* What a removed cgroup takes yet, for a thread of the driver's, is an ancestor's. */
	bpf_loop(OBSERVER_LEVEL_MAX + 1, find_online, &way, 0);
	cgrp = way.at;
	if (!cgrp)
		return 0;
	id = BPF_CORE_READ(cgrp, kn, id);
	if (account_at(id))
		return id;

	way.level = BPF_CORE_READ(cgrp, level);
	/* Else there would be no way, and the one of before be taken for it. */
	if (way.level > OBSERVER_LEVEL_MAX)
		return 0;
	bpf_loop(OBSERVER_LEVEL_MAX + 1, note_id, &way, 0);
	bpf_loop(OBSERVER_LEVEL_MAX + 1, make_one, &way, 0);
	if (way.failed)
		return 0;
	/* Nobody may be left to say that it goes. */
	account = account_at(id);
	if (account && !is_online(cgrp))
		account_offline(account, id);
	return id;
}

/*
 * The account that counts for the current task, made if need be, and its id; NULL without room.
 * nvidia-uvm works for another process at times, and says for which by the active memcg.
 */
static __always_inline struct observer_account *account_of_current(bool uvm, __u64 *id)
{
	struct task_struct *task = current();
	struct mem_cgroup *memcg = uvm ? active_memcg(task) : NULL;
	struct observer_account *account;
	struct cgroup *cgrp;

	if (memcg) {
		cgrp = BPF_CORE_READ(memcg, css.cgroup);
		if (!BPF_CORE_READ(cgrp, root, hierarchy_id)) {
			*id = account_of(cgrp);
			return account_at(*id);
		}
	}
	/* What nearly always is: a cgroup that has an account of its own already. */
	cgrp = task->cgroups->dfl_cgrp;
	if ((cgrp->self.flags & CSS_ONLINE) && cgrp->level <= OBSERVER_LEVEL_MAX) {
		*id = cgrp->kn->id;
		account = account_at(*id);
		if (account)
			return account;
	}
	*id = account_of(BPF_CORE_READ(task, cgroups, dfl_cgrp));
	return account_at(*id);
}

/* What changes on an account and on those above it. */
struct change {
	__u64 id;
	__u64 bytes;
	__u64 metadata;
	__u64 charged;
	__u64 managed;
	__u64 took_ns;
	bool system;
};

static __always_inline struct change change_of(const struct observer_record *record)
{
	struct change change = {
		.id = record->client.account,
		.bytes = record->bytes,
		.metadata = record->metadata,
		.charged = record->charged ? record->bytes - record->metadata : 0,
		.managed = record->kind == OBSERVER_MANAGED ? record->bytes : 0,
		.system = record->kind == OBSERVER_SYSTEM,
	};

	return change;
}

static __always_inline void charge(struct observer_account *account, const struct change *change)
{
	raise(&account->peak, __sync_fetch_and_add(&account->usage, change->bytes) +
			      change->bytes);
	if (change->metadata)
		add(&account->metadata, change->metadata);
	if (change->charged)
		add(&account->charged, change->charged);
	if (change->managed)
		add(&account->managed, change->managed);
	if (change->system) {
		add(&account->allocs, 1);
		add(&account->alloc_time_ns, change->took_ns);
		raise(&account->alloc_time_max_ns, change->took_ns);
	}
}

static long charge_one(__u32 index __attribute__((unused)), struct change *change)
{
	struct observer_account *account = account_at(change->id);

	if (!account)
		return 1;
	charge(account, change);
	change->id = account->parent;
	return !change->id;
}

/* The account itself is at hand; those above it are looked up. */
static __always_inline void account_charge(struct observer_account *account,
					   const struct observer_record *record, __u64 took_ns)
{
	struct change change = change_of(record);

	change.took_ns = took_ns;
	add(&account->refs, 1);
	add(&account->local, change.bytes);
	charge(account, &change);
	change.id = account->parent;
	if (change.id)
		bpf_loop(OBSERVER_LEVEL_MAX, charge_one, &change, 0);
}

static __always_inline void uncharge(struct observer_account *account, const struct change *change)
{
	add(&account->usage, -change->bytes);
	if (change->metadata)
		add(&account->metadata, -change->metadata);
	if (change->charged)
		add(&account->charged, -change->charged);
	if (change->managed)
		add(&account->managed, -change->managed);
	if (change->system)
		add(&account->frees, 1);
}

static long uncharge_one(__u32 index __attribute__((unused)), struct change *change)
{
	struct observer_account *account = account_at(change->id);

	if (!account)
		return 1;
	uncharge(account, change);
	change->id = account->parent;
	return !change->id;
}

static __always_inline void account_uncharge(const struct observer_record *record)
{
	struct change change = change_of(record);
	struct observer_account *account = account_at(change.id);
	__u64 id = change.id, parent;

	if (!account)
		return;
	parent = account->parent;
	add(&account->local, -change.bytes);
	uncharge(account, &change);
	change.id = parent;
	if (parent)
		bpf_loop(OBSERVER_LEVEL_MAX, uncharge_one, &change, 0);
	/* It was there until now, for the record. */
	if (__sync_fetch_and_add(&account->refs, -1ULL) != 1)
		return;
	bpf_map_delete_elem(&accounts, &id);
	if (parent)
		account_put(parent);
}

/* What is added on an account and on those above it. */
struct failing {
	__u64 id;
	__u64 failures;
	__u64 failed;
};

static long fail_one(__u32 index __attribute__((unused)), struct failing *failing)
{
	struct observer_account *account = account_at(failing->id);

	if (!account)
		return 1;
	add(&account->failures, failing->failures);
	add(&account->failed, failing->failed);
	failing->id = account->parent;
	return !failing->id;
}

APART_VERIFIED int account_failed(__u64 id, __u64 failures, __u64 failed)
{
	struct failing failing = { .id = id, .failures = failures, .failed = failed };
	struct observer_account *account = account_at(id);

	/* Before the root: what readers miss there, they know to be lost. */
	if (account)
		add(&account->failed_local, failed);
	bpf_loop(OBSERVER_LEVEL_MAX + 1, fail_one, &failing, 0);
	return 0;
}

/* --- clients ------------------------------------------------------------------ */

static __always_inline bool works_for_a_process(struct task_struct *task)
{
	return task->mm && !(task->flags & PF_KTHREAD);
}

static __always_inline void client_charge(struct observer_record *record)
{
	static const struct observer_client empty;
	struct observer_client *client;
	struct observer_totals *t;

	client = bpf_map_lookup_elem(&clients, &record->client);
	if (!client) {
		bpf_map_update_elem(&clients, &record->client, &empty, BPF_NOEXIST);
		client = bpf_map_lookup_elem(&clients, &record->client);
	}
	if (!client) {
		t = all();
		if (t)
			add(&t->nameless, 1);
		record->client.tgid = 0;
		return;
	}
	/* A tenth of what the helper for it takes. */
	__builtin_memcpy(client->comm, current()->comm, sizeof(client->comm));
	add(&client->records, 1);
	raise(&client->peak, __sync_fetch_and_add(&client->usage, record->bytes) + record->bytes);
	add(&client->metadata, record->metadata);
	if (record->kind == OBSERVER_MANAGED)
		add(&client->managed, record->bytes);
	if (record->charged)
		add(&client->charged, record->bytes - record->metadata);
	if (record->kind == OBSERVER_SYSTEM)
		add(&client->allocs, 1);
}

static __always_inline void client_uncharge(const struct observer_record *record)
{
	/* 6.1 takes no key from elsewhere than the stack and maps. */
	const struct observer_client_key key = record->client;
	struct observer_client *client = bpf_map_lookup_elem(&clients, &key);

	if (!client)
		return;
	add(&client->usage, -record->bytes);
	add(&client->metadata, -record->metadata);
	if (record->kind == OBSERVER_MANAGED)
		add(&client->managed, -record->bytes);
	if (record->charged)
		add(&client->charged, -(record->bytes - record->metadata));
	if (record->kind == OBSERVER_SYSTEM)
		add(&client->frees, 1);
	if (__sync_fetch_and_add(&client->records, -1ULL) != 1)
		return;
	/* The usual end: a process that exits closes the driver. Readers find the rest. */
	if ((current()->flags & PF_EXITING) &&
	    bpf_get_current_pid_tgid() >> 32 == key.tgid)
		bpf_map_delete_elem(&clients, &key);
}

/* --- records ------------------------------------------------------------------ */

/* Where each counted what it did; the record's handle may be another's by now. */
APART_VERIFIED int settle(const struct observer_record *record)
{
	struct observer_totals *t = all();

	if (!t || !record)
		return 0;
	add(&t->records, -1ULL);
	if (record->kind == OBSERVER_DRIVER) {
		add(&t->driver_usage, -record->bytes);
		return 0;
	}
	if (record->client.tgid)
		client_uncharge(record);
	account_uncharge(record);
	return 0;
}

APART_VERIFIED int forget(__u64 handle)
{
	struct observer_record *found = bpf_map_lookup_elem(&records, &handle);
	struct observer_record record;

	if (!found)
		return 0;
	record = *found;
	if (bpf_map_delete_elem(&records, &handle))
		return 0;
	settle(&record);
	return 1;
}

APART_VERIFIED int remember(const struct observer_call *call, __u64 handle)
{
	struct observer_record record = { 0 };
	struct observer_totals *t = all();
	struct observer_account *account;
	struct task_struct *task;

	if (!t || !call)
		return 0;
	record.bytes = call->bytes;
	record.metadata = call->metadata;
	record.kind = call->kind;
	record.charged = call->charged;
	if (call->kind == OBSERVER_DRIVER) {
		raise(&t->driver_peak, __sync_fetch_and_add(&t->driver_usage, call->bytes) +
				       call->bytes);
	} else {
		account = account_of_current(call->uvm, &record.client.account);
		if (!account) {
			untracked(call->bytes);
			return 0;
		}
		task = current();
		if (works_for_a_process(task)) {
			record.client.start_ns = task->group_leader->start_boottime;
			record.client.tgid = bpf_get_current_pid_tgid() >> 32;
		}
		account_charge(account, &record, call->began_ns ?
			       bpf_ktime_get_ns() - call->began_ns : 0);
		if (record.client.tgid)
			client_charge(&record);
	}
	add(&t->records, 1);
	if (!bpf_map_update_elem(&records, &handle, &record, BPF_NOEXIST))
		return 0;
	/* A handle that is handed out again was freed unseen. */
	if (forget(handle))
		add(&t->stale_count, 1);
	if (bpf_map_update_elem(&records, &handle, &record, BPF_ANY)) {
		settle(&record);
		untracked(call->bytes);
	}
	return 0;
}

/* --- calls -------------------------------------------------------------------- */

static __always_inline struct doing *doing(void)
{
	return bpf_task_storage_get(&tasks, current(), NULL, 0);
}

/* NULL where the kernel has no memory for it. */
static __always_inline struct doing *doing_from_now(void)
{
	return bpf_task_storage_get(&tasks, current(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* As kmod/hooks/adapter.h has it. */
static __always_inline enum observer_kind kind_for(const struct doing *doing, bool uvm,
						   enum observer_kind kind)
{
	struct task_struct *task = current();

	if (!works_for_a_process(task))
		return uvm && active_memcg(task) ? kind : OBSERVER_DRIVER;
	return doing && doing->starts ? OBSERVER_DRIVER : kind;
}

static __always_inline void call_begin_in(struct doing *doing, enum observer_call_of of,
					  const struct observer_call *call)
{
	struct observer_totals *t;

	if (!doing) {
		untracked(call->bytes);
		return;
	}
	/* The one before is over, and nobody knows how it ended. */
	if (doing->under_way & 1U << of) {
		t = all();
		if (t)
			add(&t->missed_returns[of], 1);
	}
	doing->calls[of] = *call;
	doing->under_way |= 1U << of;
}

static __always_inline void call_begin(enum observer_call_of of, const struct observer_call *call)
{
	call_begin_in(doing_from_now(), of, call);
}

static __always_inline struct observer_call *call_find(enum observer_call_of of)
{
	struct doing *mine = doing();

	return mine && (mine->under_way & 1U << of) ? &mine->calls[of] : NULL;
}

/* Takes the call out that has ended, and returns what its task is doing; NULL where there is none. */
static __always_inline struct doing *call_take(enum observer_call_of of, struct observer_call *call)
{
	struct doing *mine = doing();

	if (!mine || !(mine->under_way & 1U << of))
		return NULL;
	*call = mine->calls[of];
	mine->under_way &= ~(1U << of);
	return mine;
}

/* Where the driver has put the handle; 0 where nobody knows. */
static __always_inline __u64 handle_of(const struct observer_call *call)
{
	__u64 handle = call->at;

	if (!handle && bpf_probe_read_kernel(&handle, sizeof(handle), (void *)call->out))
		handle = 0;
	return handle;
}

static __always_inline void call_done(const struct observer_call *call, __u64 handle)
{
	if (handle)
		remember(call, handle + call->apart);
	else
		untracked(call->bytes);
}

static __always_inline int call_end(enum observer_call_of of, bool done)
{
	struct observer_call call;

	if (call_take(of, &call) && done)
		call_done(&call, handle_of(&call));
	return 0;
}

static __always_inline bool succeeded(struct pt_regs *ctx)
{
	return (__u32)PT_REGS_RC(ctx) == NV_OK;
}

/* --- what the driver has no memory for ------------------------------------------ */

/* As many zones as are looked at. */
#define ZONES			256

/* So long a failed try may be the one before of the same request. */
#define SAME_REQUEST_NS		10000000000ULL

/* The way along the zones of the machine. */
struct zones {
	struct zoneref *at;
	struct pglist_data *node;
	__s64 pages;
	__u64 cache;
	__u64 objects;
	__u64 low;
};

#define STATISTIC(of, kind, item)						\
({										\
	long value = 0;								\
										\
	bpf_probe_read_kernel(&value, sizeof(value),				\
			      (void *)(of) +					\
			      bpf_core_field_offset(*(of), vm_stat) +		\
			      sizeof(value) * bpf_core_enum_value(enum kind, item)); \
	value > 0 ? value : 0;							\
})

static long add_zone(__u32 index __attribute__((unused)), struct zones *zones)
{
	struct zoneref *at = zones->at;
	struct zone *zone = BPF_CORE_READ(at, zone);
	struct pglist_data *node;

	if (!zone)
		return 1;
	zones->at = (void *)at + bpf_core_type_size(struct zoneref);
	zones->pages += STATISTIC(zone, zone_stat_item, NR_FREE_PAGES) -
			STATISTIC(zone, zone_stat_item, NR_FREE_CMA_PAGES);
	zones->low += BPF_CORE_READ(zone, _watermark[WMARK_LOW]) +
		      BPF_CORE_READ(zone, watermark_boost);
	/* Those of a node follow each other. */
	node = BPF_CORE_READ(zone, zone_pgdat);
	if (node == zones->node)
		return 0;
	zones->node = node;
	zones->pages -= BPF_CORE_READ(node, totalreserve_pages);
	zones->cache += STATISTIC(node, node_stat_item, NR_ACTIVE_FILE) +
			STATISTIC(node, node_stat_item, NR_INACTIVE_FILE);
	zones->objects += STATISTIC(node, node_stat_item, NR_SLAB_RECLAIMABLE_B) +
			  STATISTIC(node, node_stat_item, NR_KERNEL_MISC_RECLAIMABLE);
	return 0;
}

static __always_inline __u64 less_what_stays(__u64 pages, __u64 low)
{
	return pages - (pages / 2 < low ? pages / 2 : low);
}

/* As the kernel computes MemAvailable, less what is free in CMA areas; 0 where nobody knows. */
static __noinline __u64 available_now(struct mem_cgroup *memcg)
{
	struct zones zones = { 0 };
	struct pglist_data *node;

	node = BPF_CORE_READ(memcg, nodeinfo[0], lruvec.pgdat);
	if (!node)
		return 0;
	zones.at = (void *)node + bpf_core_field_offset(*node, node_zonelists);
	bpf_loop(ZONES, add_zone, &zones, 0);
	zones.pages += less_what_stays(zones.cache, zones.low) +
		       less_what_stays(zones.objects, zones.low);
	return zones.pages > 0 ? (__u64)zones.pages << page_shift : 0;
}

static __always_inline __u64 pages_in(const struct observer_call *call)
{
	return (call->bytes - call->metadata) >> page_shift;
}

/*
 * A request has failed when the driver had no memory for it in pages of any size: it tries smaller
 * ones within the same call. Which call it is isn't known here. So a try counts as failed until one
 * in smaller pages for as much follows: up to a block less, as the one before was rounded up, but
 * not an allocation that is much smaller.
 */
static __noinline int take_back_failure(struct doing *mine, __u64 pages, __u64 block)
{
	struct last_failure *last = &mine->failure;

	if (last->pages && block < last->block && pages + last->block > last->pages &&
	    2 * pages > last->pages &&
	    bpf_ktime_get_boot_ns() - last->time_ns < SAME_REQUEST_NS)
		account_failed(last->account, 0, -1ULL);
	last->pages = 0;
	return 0;
}

APART_VERIFIED int request_failed(const struct observer_call *call, bool no_memory)
{
	struct observer_failure *newest;
	struct observer_account *account;
	struct task_struct *task = current();
	struct doing *mine = doing();
	__u64 id;

	if (!mine || !call)
		return 0;
	account = account_of_current(call->uvm, &id);
	if (!account)
		return 0;
	if (no_memory)
		take_back_failure(mine, pages_in(call), call->block);
	account_failed(id, call->kind == OBSERVER_SYSTEM, no_memory);
	if (!no_memory)
		return 0;
	newest = &account->newest;
	newest->time_ns = bpf_ktime_get_boot_ns();
	newest->bytes = call->bytes;
	newest->available = available_now(memcg_of(task));
	newest->tgid = bpf_get_current_pid_tgid() >> 32;
	__builtin_memcpy(newest->comm, task->comm, sizeof(newest->comm));
	mine->failure.account = id;
	mine->failure.time_ns = newest->time_ns;
	mine->failure.pages = pages_in(call);
	mine->failure.block = call->block;
	return 0;
}

/* Of the driver's memory in pages. */
static __always_inline int pages_end(struct pt_regs *ctx, enum observer_call_of of)
{
	const __u32 status = PT_REGS_RC(ctx);
	struct observer_call call;
	struct doing *mine;

	mine = call_take(of, &call);
	if (!mine)
		return 0;
	if (status == NV_OK) {
		call_done(&call, handle_of(&call));
		if (mine->failure.pages)
			take_back_failure(mine, pages_in(&call), call.block);
	} else if (call.kind != OBSERVER_DRIVER) {
		/* Where there is no memory for a chunk, nvidia-uvm asks for smaller ones, down to a page. */
		request_failed(&call, status == NV_ERR_NO_MEMORY &&
			       (of != OBSERVER_CALL_CHUNK || call.block == 1));
	}
	return 0;
}

/* --- nvidia.ko ---------------------------------------------------------------- */

/* An argument that is on the stack: the first there is 0. */
static __always_inline __u64 stack_argument(struct pt_regs *ctx, int index)
{
	__u64 value = 0;
#if defined(__TARGET_ARCH_x86)
	const __u64 first = PT_REGS_SP(ctx) + 8;
#else
	const __u64 first = PT_REGS_SP(ctx);
#endif

	bpf_probe_read_kernel(&value, sizeof(value), (void *)(first + 8 * index));
	return value;
}

/* The last argument of 7 to 10. */
static __always_inline __u64 last_argument(struct pt_regs *ctx, int count)
{
#if defined(__TARGET_ARCH_x86)
	return stack_argument(ctx, count - 7);
#else
	if (count == 7)
		return ((struct user_pt_regs *)ctx)->regs[6];
	return count == 8 ? ((struct user_pt_regs *)ctx)->regs[7] : stack_argument(ctx, count - 9);
#endif
}

SEC("kprobe")
int alloc_pages_entry(struct pt_regs *ctx)
{
	const __u32 count = PT_REGS_PARM2(ctx);
	__u64 third = PT_REGS_PARM3(ctx), fourth = PT_REGS_PARM4(ctx);
	const struct series *series = driver(false);
	struct observer_call call = { .block = 1 };
	__u64 page_size, pages = count;
	struct doing *mine;
	__u8 contiguous;

	ran(ctx);
	if (!series)
		return 0;
	/* Both are read: a context's address that was computed can't be. */
	barrier_var(third);
	barrier_var(fourth);
	if (series->layouts & LAYOUT_ALLOC_10) {
		page_size = third;
		contiguous = fourth;
		call.out = last_argument(ctx, 10);
	} else {
		page_size = 1ULL << page_shift;
		contiguous = third;
		call.out = last_argument(ctx, series->layouts & LAYOUT_ALLOC_9 ? 9 : 8);
	}
	if (contiguous && count) {
		pages = power_of_two(pages);
	} else if (!contiguous && page_size >> page_shift > 1) {
		call.block = power_of_two(((page_size - 1) >> page_shift) + 1);
		pages = (pages + call.block - 1) & ~(call.block - 1ULL);
	}
	call.bytes = pages << page_shift;
	mine = doing_from_now();
	call.kind = kind_for(mine, false, OBSERVER_SYSTEM);
	if (call.kind == OBSERVER_SYSTEM)
		call.metadata = (__u64)count * series->sizes.page + series->sizes.object;
	call.bytes += call.metadata;
	call.began_ns = bpf_ktime_get_ns();
	call_begin_in(mine, OBSERVER_CALL_ALLOC, &call);
	return 0;
}

SEC("kprobe")
int alloc_pages_return(struct pt_regs *ctx)
{
	ran(ctx);
	return pages_end(ctx, OBSERVER_CALL_ALLOC);
}

/* Just before the pages go, so that the handle can't be another's yet. */
SEC("kprobe")
int free_pages_entry(struct pt_regs *ctx)
{
	ran(ctx);
	forget(PT_REGS_PARM1(ctx));
	return 0;
}

/* --- what the drivers keep beside pages ---------------------------------------- */

/*
 * As kmod/hooks/metadata.c has it. Objects of a known size are recorded under an address of their
 * own, the next one: what they lie in may be recorded by its size.
 */
#define APART			1

/* Of a range of managed memory, beside itself. */
#define APART_ARRAY		2
#define APART_SHORTENED		3

/* Of a VA space, beside itself: the first lot of groups of ranges, and the others behind it. */
#define APART_LOTS		2

/* A range lies behind a pointer to its VA space in what nvidia-uvm keeps of it, in all series. */
#define RANGE_NODE		8

/* Of a tree of ranges: the head of the list that all of them are in. */
#define TREE_LIST		8

/* More ranges in groups than these nobody counts: it would take too long. They are as many at most. */
#define RANGES_COUNTED		(1 << 16)

/* Larger sizes than these the driver refuses. */
#define SIZE_BOUND		(-65536ULL)

static __always_inline struct observer_call metadata_call(bool uvm, __u64 bytes)
{
	struct observer_call call = {
		.bytes = bytes,
		.metadata = bytes,
		.kind = kind_for(doing(), uvm, OBSERVER_METADATA),
		.uvm = uvm,
	};

	return call;
}

static __always_inline __u64 vmalloc_bytes(__u64 size)
{
	const __u64 page = 1ULL << page_shift;

	return (size + HEADER_BYTES + page - 1) & ~(page - 1);
}

/*
 * What lies in pages of its own begins behind a header at the most: others aren't looked for. It is
 * recorded by the address of its pages.
 */
static __always_inline bool may_be_vmalloc(__u64 at)
{
	return (at & ((1ULL << page_shift) - 1)) <= HEADER_BYTES;
}

static __always_inline __u64 pages_of(__u64 at)
{
	return at & ~((1ULL << page_shift) - 1);
}

/*
 * Of a large block of a driver's the return from the kernel's vmalloc() is hooked, as the driver's own
 * function is called for small ones all the time. The caller is known by its address: others ask
 * for blocks, too. A block that is asked for within a function that is hooked comes from its code, or
 * from code near it.
 */
#define SAME_CODE		(64 * 1024)

static __always_inline bool asked_by(const struct observer_call *call, __u64 caller)
{
	if (!call->from)
		return caller - nvidia_code < nvidia_code_size;
	return caller - call->from + SAME_CODE < 2 * SAME_CODE;
}

static __always_inline int vmalloc_end(struct pt_regs *ctx, enum observer_call_of of)
{
	const __u64 at = PT_REGS_RC(ctx);
	struct observer_call call;

	/* One that a task never asked for is not the next one that it gets. */
	if (call_take(of, &call) && at && asked_by(&call, PT_REGS_IP(ctx)))
		remember(&call, at);
	return 0;
}

#define RETURN(which, kind)							\
	SEC("kprobe")								\
	int which##_return(struct pt_regs *ctx)					\
	{									\
		ran(ctx);							\
		return call_end(kind, succeeded(ctx));				\
	}

SEC("kprobe")
int free_object_entry(struct pt_regs *ctx)
{
	ran(ctx);
	forget(PT_REGS_PARM1(ctx) + APART);
	return 0;
}

/* nvidia_close(inode, file), uvm_release_entry(inode, file), os_unlock_user_pages(pages, array) */
SEC("kprobe")
int free_second_entry(struct pt_regs *ctx)
{
	ran(ctx);
	forget(PT_REGS_PARM2(ctx) + APART);
	return 0;
}

/* --- of nvidia.ko -------------------------------------------------------------- */

/* Run once, at the start: of a driver that is loaded, the function that alone calls __vmalloc(). */
SEC("syscall")
int find_code(void *ctx __attribute__((unused)))
{
	static const char name[] = "nvidia:os_alloc_mem";
	__u64 start = 0;

	if (bpf_kallsyms_lookup_name(name, sizeof(name), 0, &start) || !start)
		return 0;
	nvidia_code = start;
	nvidia_code_size = FUNCTION_SIZE;
	return 0;
}

/* __vmalloc(), whatever calls it: os_alloc_mem() asks it for its block and the header before that. */
SEC("kprobe")
int vmalloc_entry(struct pt_regs *ctx)
{
	const __u64 size = PT_REGS_PARM1(ctx);
	struct observer_call call;

	ran(ctx);
	if (size <= OS_MEM_BOUND + HEADER_BYTES || size > SIZE_BOUND || !nvidia_code_size ||
	    !driver(false))
		return 0;
	call = metadata_call(false, vmalloc_bytes(size - HEADER_BYTES));
	call_begin(OBSERVER_CALL_OS_MEM, &call);
	return 0;
}

/* Where the kernel hides its addresses. */
SEC("kprobe")
int os_alloc_entry(struct pt_regs *ctx)
{
	const __u64 size = PT_REGS_PARM2(ctx);
	struct observer_call call;

	ran(ctx);
	if (size <= OS_MEM_BOUND || size > SIZE_BOUND || !driver(false))
		return 0;
	call = metadata_call(false, vmalloc_bytes(size));
	call.from = PT_REGS_IP(ctx);
	call_begin(OBSERVER_CALL_OS_MEM, &call);
	return 0;
}

/* __vmalloc() */
SEC("kprobe")
int os_vmalloc_return(struct pt_regs *ctx)
{
	ran(ctx);
	return vmalloc_end(ctx, OBSERVER_CALL_OS_MEM);
}

/*
 * vfree(), whatever calls it. Interrupts do, too: a kprobe's program would be left out while another
 * program of a kprobe's runs on the processor, be it for a driver's block or not. This one is left
 * out within itself alone.
 */
SEC("fentry/vfree")
int vfree_entry(void *ctx)
{
	__u64 at = 0;

	ran(ctx);
	/* Kernels such as 6.12 let no program read an argument that is a pointer to const void. */
	if (!bpf_get_func_arg(ctx, 0, &at) && at)
		forget(at);
	return 0;
}

/* uvm_kvfree(), and os_free_mem() where vfree() can't be traced. They are called for small blocks, too. */
SEC("kprobe")
int free_large_entry(struct pt_regs *ctx)
{
	const __u64 at = PT_REGS_PARM1(ctx);

	ran(ctx);
	if (at && may_be_vmalloc(at))
		forget(pages_of(at));
	return 0;
}

SEC("kprobe")
int lock_pages_entry(struct pt_regs *ctx)
{
	const __u64 bytes = user_pages_bytes(PT_REGS_PARM2(ctx));
	struct observer_call call;

	ran(ctx);
	if (!bytes || !driver(false))
		return 0;
	call = metadata_call(false, bytes);
	call.out = PT_REGS_PARM3(ctx);
	call.apart = APART;
	call_begin(OBSERVER_CALL_USER_PAGES, &call);
	return 0;
}

RETURN(lock_pages, OBSERVER_CALL_USER_PAGES)

/* nvidia_open(inode, file), uvm_open_entry(inode, file) */
#define FILE(size, uvm)								\
	SEC("kprobe")								\
	int size##_entry(struct pt_regs *ctx)					\
	{									\
		const struct series *series = driver(uvm);			\
		struct observer_call call;					\
										\
		ran(ctx);							\
		if (!series)							\
			return 0;						\
		call = metadata_call(uvm, series->sizes.size);			\
		call.at = PT_REGS_PARM2(ctx);					\
		call.apart = APART;						\
		call_begin(OBSERVER_CALL_FILE, &call);				\
		return 0;							\
	}									\
										\
	RETURN(size, OBSERVER_CALL_FILE)

FILE(file, false)

/*
 * A client of the resource manager. Its constructor and destructor are in the part of the driver
 * that has no place for a probe, and each of them calls one function that has: a client refers to
 * the process that made it. Which of a process's clients goes isn't known here: the one that was
 * made last is taken. The driver makes and removes one at a time.
 */
#define CLIENTS_OF_ONE		0xffff

/* No address has this form. */
static __always_inline __u64 client_handle(__u64 process, __u32 number)
{
	return process << 16 | number;
}

SEC("kprobe")
int client_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(false);
	struct observer_call call;

	ran(ctx);
	if (!series)
		return 0;
	call = metadata_call(false, series->sizes.client);
	call_begin(OBSERVER_CALL_CLIENT, &call);
	return 0;
}

SEC("kprobe")
int client_return(struct pt_regs *ctx)
{
	__u64 process = PT_REGS_RC(ctx);
	struct observer_call call;
	__u32 *count, none = 0;

	ran(ctx);
	if (!call_take(OBSERVER_CALL_CLIENT, &call) || !process)
		return 0;
	count = bpf_map_lookup_elem(&made, &process);
	if (!count) {
		bpf_map_update_elem(&made, &process, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&made, &process);
	}
	if (count && *count < CLIENTS_OF_ONE)
		remember(&call, client_handle(process, ++*count));
	else
		untracked(call.bytes);
	return 0;
}

SEC("kprobe")
int free_client_entry(struct pt_regs *ctx)
{
	__u64 process = PT_REGS_PARM1(ctx);
	__u32 *count;

	ran(ctx);
	count = bpf_map_lookup_elem(&made, &process);
	if (!count)
		return 0;
	forget(client_handle(process, *count));
	if (--*count == 0)
		bpf_map_delete_elem(&made, &process);
	return 0;
}

/* --- of nvidia-uvm.ko ---------------------------------------------------------- */

FILE(uvm_file, true)

SEC("kprobe")
int block_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(true);
	struct observer_call call;

	ran(ctx);
	if (!series)
		return 0;
	call = metadata_call(true, series->sizes.block);
	call.out = PT_REGS_PARM4(ctx);
	call.apart = APART;
	call_begin(OBSERVER_CALL_BLOCK, &call);
	return 0;
}

RETURN(block, OBSERVER_CALL_BLOCK)

/* A range. Not every caller asks for its address; the tree that it is put into is given that. */
static __always_inline int range_begin(__u64 bytes, __u64 out, __u64 from, bool managed)
{
	struct observer_call call = metadata_call(true, bytes);

	call.out = out;
	call.from = from;
	call.managed = managed;
	call.apart = APART;
	call_begin(OBSERVER_CALL_RANGE, &call);
	return 0;
}

SEC("kprobe")
int external_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(true);

	ran(ctx);
	if (!series)
		return 0;
	return range_begin(series->sizes.external, PT_REGS_PARM5(ctx), 0, false);
}

SEC("kprobe")
int pool_range_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(true);

	ran(ctx);
	if (!series)
		return 0;
	return range_begin(series->sizes.pool, last_argument(ctx, 7), 0, false);
}

SEC("kprobe")
int mmap_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(true);

	ran(ctx);
	if (!series)
		return 0;
	return range_begin(series->sizes.managed + ARRAY_BOUND, PT_REGS_PARM4(ctx), 0, true);
}

SEC("kprobe")
int split_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(true);

	ran(ctx);
	if (!series)
		return 0;
	return range_begin(series->sizes.managed + ARRAY_BOUND, PT_REGS_PARM3(ctx),
			   PT_REGS_PARM1(ctx), true);
}

/* What is recorded of a range beside itself. */
static __noinline int remember_array(struct observer_call *call, __u64 bytes, __u64 handle)
{
	call->bytes = bytes;
	call->metadata = bytes;
	return remember(call, handle);
}

SEC("kprobe")
int range_return(struct pt_regs *ctx)
{
	const bool done = succeeded(ctx);
	struct observer_call call;
	__u64 handle;

	ran(ctx);
	if (!call_take(OBSERVER_CALL_RANGE, &call))
		return 0;
	if (done) {
		handle = handle_of(&call);
		call_done(&call, handle);
		if (call.array && handle)
			remember_array(&call, call.array, handle + APART_ARRAY);
		else if (call.array)
			untracked(call.array);
	}
	if (call.shortened)
		remember_array(&call, call.shortened, call.from + APART_SHORTENED);
	return 0;
}

SEC("kprobe")
int free_range_entry(struct pt_regs *ctx)
{
	const __u64 range = PT_REGS_PARM1(ctx);

	ran(ctx);
	if (!range)
		return 0;
	forget(range + APART);
	forget(range + APART_ARRAY);
	forget(range + APART_SHORTENED);
	return 0;
}

/*
 * uvm_range_tree_add(tree, node): a range that is being made, or one of a group. Which tree has
 * those of a VA space's groups is known from the first of them.
 */
SEC("kprobe")
int tree_add_entry(struct pt_regs *ctx)
{
	struct observer_call *call = call_find(OBSERVER_CALL_RANGE);
	struct space *space;

	ran(ctx);
	if (call) {
		if (!call->out)
			call->at = PT_REGS_PARM2(ctx) - RANGE_NODE;
		return 0;
	}
	call = call_find(OBSERVER_CALL_ASSIGN);
	space = call ? bpf_map_lookup_elem(&spaces, &call->at) : NULL;
	if (space)
		space->tree = PT_REGS_PARM1(ctx);
	return 0;
}

/* --- its heap ------------------------------------------------------------------ */

/* The call that makes a range of managed memory, where an array of that may be so large. */
static __always_inline struct observer_call *call_of_array(__u64 size)
{
	struct observer_call *call;

	if (size <= ARRAY_BOUND || size > (__u64)KVMALLOC_BOUND_PAGES << page_shift)
		return NULL;
	call = call_find(OBSERVER_CALL_RANGE);
	return call && call->managed ? call : NULL;
}

static __always_inline bool counts_kvmalloc(__u64 size)
{
	return size > (__u64)KVMALLOC_BOUND_PAGES << page_shift && size <= SIZE_BOUND;
}

SEC("kprobe")
int kvmalloc_entry(struct pt_regs *ctx)
{
	const __u64 size = PT_REGS_PARM1(ctx);
	struct observer_call *range, call;

	ran(ctx);
	if (size <= ARRAY_BOUND || !driver(true) || call_find(OBSERVER_CALL_KVREALLOC))
		return 0;
	range = call_of_array(size);
	if (range) {
		/* Without it there is no range either, and nothing is counted. */
		if (!range->array)
			range->array = power_of_two(size);
		return 0;
	}
	if (!counts_kvmalloc(size))
		return 0;
	call = metadata_call(true, vmalloc_bytes(size));
	call.from = PT_REGS_IP(ctx);
	call_begin(OBSERVER_CALL_KVMALLOC, &call);
	return 0;
}

/* vmalloc(), vzalloc() */
SEC("kprobe")
int uvm_vmalloc_return(struct pt_regs *ctx)
{
	ran(ctx);
	return vmalloc_end(ctx, OBSERVER_CALL_KVMALLOC);
}

/* Of a new block the driver may ask the function above, or a copy of its own. */
SEC("kprobe")
int kvrealloc_entry(struct pt_regs *ctx)
{
	const __u64 size = PT_REGS_PARM2(ctx);
	const __u64 at = PT_REGS_PARM1(ctx);
	struct observer_record *old = NULL;
	struct observer_call *range, call = { 0 };
	struct doing *mine = doing_from_now();
	struct observer_record record;
	__u64 pages = pages_of(at);

	ran(ctx);
	if (!driver(true))
		return 0;
	if (at && may_be_vmalloc(at))
		old = bpf_map_lookup_elem(&records, &pages);
	range = old ? call_of_array(size) : NULL;
	if (range && range->shortened)
		range = NULL;
	if (range)
		call = metadata_call(true, power_of_two(size));
	else if (counts_kvmalloc(size))
		call = metadata_call(true, vmalloc_bytes(size));
	else if (!old)
		return 0;
	call.managed = range != NULL;
	call.from = size;
	call.at = pages;
	call_begin_in(mine, OBSERVER_CALL_KVREALLOC, &call);
	if (!old)
		return 0;
	record = *old;
	if (bpf_map_delete_elem(&records, &pages))
		return 0;
	if (mine && !mine->resizes) {
		mine->resizes = 1;
		mine->resizing = record;
		return 0;
	}
	/* The block stays, and is no longer in an account. */
	settle(&record);
	untracked(record.bytes);
	return 0;
}

/*
 * Gives up what was counted for a block before it was resized, or puts it back where the block
 * stays as it was. A function of its own: the stack has no room for its record and the caller's.
 */
APART_VERIFIED int resized(__u64 before, bool stays)
{
	struct doing *mine = doing();
	struct observer_record record;

	if (!mine || !mine->resizes)
		return 0;
	record = mine->resizing;
	mine->resizes = 0;
	if (!stays || bpf_map_update_elem(&records, &before, &record, BPF_ANY))
		settle(&record);
	return 0;
}

SEC("kprobe")
int kvrealloc_return(struct pt_regs *ctx)
{
	const __u64 at = PT_REGS_RC(ctx);
	struct observer_call *range, call;

	ran(ctx);
	if (!call_take(OBSERVER_CALL_KVREALLOC, &call))
		return 0;
	resized(call.at, !at && call.from);
	if (!at || !call.bytes)
		return 0;
	range = call.managed ? call_find(OBSERVER_CALL_RANGE) : NULL;
	if (range)
		range->shortened = call.bytes;
	else
		remember(&call, pages_of(at));
	return 0;
}

/* --- VA spaces, and their groups of ranges ------------------------------------- */

SEC("kprobe")
int space_entry(struct pt_regs *ctx)
{
	const struct series *series = driver(true);
	struct observer_call call;

	ran(ctx);
	if (!series)
		return 0;
	call = metadata_call(true, series->sizes.va_space);
	call.from = PT_REGS_PARM1(ctx);
	call.out = PT_REGS_PARM2(ctx);
	call.apart = APART;
	call_begin(OBSERVER_CALL_SPACE, &call);
	return 0;
}

SEC("kprobe")
int space_return(struct pt_regs *ctx)
{
	const bool done = succeeded(ctx);
	struct observer_call call;
	struct space space = { 0 };
	__u64 at;

	ran(ctx);
	if (!call_take(OBSERVER_CALL_SPACE, &call) || !done)
		return 0;
	at = handle_of(&call);
	call_done(&call, at);
	space.mapping = call.from;
	/* Its groups of ranges have nowhere to be counted. */
	if (!at || bpf_map_update_elem(&spaces, &at, &space, BPF_ANY) ||
	    bpf_map_update_elem(&mappings, &space.mapping, &at, BPF_ANY))
		untracked(0);
	return 0;
}

static long forget_lot(__u32 index, __u64 *lots)
{
	forget(*lots + index);
	return 0;
}

SEC("kprobe")
int free_space_entry(struct pt_regs *ctx)
{
	__u64 at = PT_REGS_PARM1(ctx), lots = at + APART_LOTS, mapping;
	struct space *space;

	ran(ctx);
	forget(at + APART);
	space = bpf_map_lookup_elem(&spaces, &at);
	if (!space)
		return 0;
	bpf_loop(space->group_lots, forget_lot, &lots, 0);
	mapping = space->mapping;
	bpf_map_delete_elem(&mappings, &mapping);
	bpf_map_delete_elem(&spaces, &at);
	return 0;
}

/* The VA space of an open file. */
static __always_inline struct space *space_of(struct file *file, __u64 *at)
{
	__u64 mapping = (__u64)BPF_CORE_READ(file, f_mapping);
	__u64 *found = bpf_map_lookup_elem(&mappings, &mapping);

	if (!found)
		return NULL;
	*at = *found;
	return bpf_map_lookup_elem(&spaces, at);
}

/* So many groups, and ranges in them, have to find room in a VA space's lots. */
struct lots {
	__u64 space;
	__u64 wanted;
};

static long count_lot(__u32 index __attribute__((unused)), struct lots *lots)
{
	struct space *space = bpf_map_lookup_elem(&spaces, &lots->space);
	const struct series *series = driver(true);
	struct doing *mine = doing_from_now();
	struct observer_call *call;
	__u32 lot;

	if (!space || !series)
		return 1;
	lot = space->group_lots;
	if (lot >= GROUP_LOTS || lots->wanted <= groups_in(lot))
		return 1;
	if (__sync_val_compare_and_swap(&space->group_lots, lot, lot + 1) != lot)
		return 0;
	if (!mine) {
		untracked((groups_in(lot + 1) - groups_in(lot)) * series->sizes.group);
		return 0;
	}
	call = &mine->lot;
	call->bytes = (groups_in(lot + 1) - groups_in(lot)) * series->sizes.group;
	call->metadata = call->bytes;
	call->kind = kind_for(mine, true, OBSERVER_METADATA);
	call->uvm = true;
	remember(call, lots->space + APART_LOTS + lot);
	return 0;
}

APART_VERIFIED int count_groups(__u64 at, __u64 wanted)
{
	struct lots lots = { .space = at, .wanted = wanted };

	return bpf_loop(2 * GROUP_LOTS, count_lot, &lots, 0);
}

/* Not inline: the stack of a program, and of all that it calls, is small. */
static __noinline int space_call_begin(enum observer_call_of of, __u64 at)
{
	struct observer_call call = { .at = at, .kind = OBSERVER_METADATA };

	call_begin(of, &call);
	return 0;
}

SEC("kprobe")
int group_entry(struct pt_regs *ctx)
{
	struct space *space;
	__u64 at;

	ran(ctx);
	space = space_of((struct file *)PT_REGS_PARM2(ctx), &at);
	if (!space)
		return 0;
	__sync_fetch_and_add(&space->groups, 1);
	count_groups(at, (__u64)space->groups + space->ranges);
	space_call_begin(OBSERVER_CALL_GROUP, at);
	return 0;
}

static __always_inline int one_less(bool goes)
{
	struct observer_call call;
	struct space *space;

	if (!call_take(OBSERVER_CALL_GROUP, &call) || !goes)
		return 0;
	space = bpf_map_lookup_elem(&spaces, &call.at);
	/* What was made before the observer came is not counted. */
	if (space && space->groups)
		__sync_fetch_and_add(&space->groups, -1);
	return 0;
}

SEC("kprobe")
int group_return(struct pt_regs *ctx)
{
	const bool done = succeeded(ctx);

	ran(ctx);
	return one_less(!done);
}

SEC("kprobe")
int free_group_entry(struct pt_regs *ctx)
{
	__u64 at;

	ran(ctx);
	if (space_of((struct file *)PT_REGS_PARM2(ctx), &at))
		space_call_begin(OBSERVER_CALL_GROUP, at);
	return 0;
}

SEC("kprobe")
int free_group_return(struct pt_regs *ctx)
{
	const bool done = succeeded(ctx);

	ran(ctx);
	return one_less(done);
}

/* The way along the list of a tree's ranges. */
struct walk {
	__u64 head;
	__u64 at;
	__u32 count;
};

static long pass_range(__u32 index, struct walk *walk)
{
	if (bpf_probe_read_kernel(&walk->at, sizeof(walk->at), (void *)walk->at) ||
	    !walk->at || walk->at == walk->head)
		return 1;
	walk->count = index + 1;
	return 0;
}

/* How many ranges are in groups; the VA space's lock is held. As many as may be, where it is many. */
static __noinline __u32 count_assigned(__u64 tree, __u32 most)
{
	struct walk walk = { .head = tree + TREE_LIST, .at = tree + TREE_LIST };

	if (!tree)
		return 0;
	bpf_loop(RANGES_COUNTED, pass_range, &walk, 0);
	return walk.count < RANGES_COUNTED ? walk.count : most;
}

/* See kmod/hooks/va_space.c. */
SEC("kprobe")
int assign_entry(struct pt_regs *ctx)
{
	__u64 at = PT_REGS_PARM1(ctx);
	struct space *space;

	ran(ctx);
	space = bpf_map_lookup_elem(&spaces, &at);
	if (!space)
		return 0;
	if (!space->tree)
		space_call_begin(OBSERVER_CALL_ASSIGN, at);
	space->ranges += RANGES_ASSIGNED;
	if ((__u64)space->groups + space->ranges <= groups_in(space->group_lots))
		return 0;
	space->ranges = count_assigned(space->tree, space->ranges - RANGES_ASSIGNED) +
			RANGES_ASSIGNED;
	count_groups(at, 2 * ((__u64)space->groups + space->ranges));
	return 0;
}

SEC("kprobe")
int assign_return(struct pt_regs *ctx)
{
	struct observer_call call;

	ran(ctx);
	call_take(OBSERVER_CALL_ASSIGN, &call);
	return 0;
}

/* --- nvidia-uvm.ko ------------------------------------------------------------ */

/* Has the kernel's memory controller somebody to charge? It has not, for its root. */
static __always_inline bool memcg_charges(struct task_struct *task)
{
	struct mem_cgroup *memcg = active_memcg(task) ?: memcg_of(task);

	return memcg && BPF_CORE_READ(memcg, css.parent);
}

SEC("kprobe")
int chunk_entry(struct pt_regs *ctx)
{
	const __u32 size = PT_REGS_PARM1(ctx), flags = PT_REGS_PARM2(ctx);
	__u64 third = PT_REGS_PARM3(ctx), fourth = PT_REGS_PARM4(ctx);
	const struct series *series = driver(true);
	struct observer_call call = {
		.bytes = size,
		.kind = OBSERVER_MANAGED,
		.uvm = true,
		.block = size >> page_shift,
	};

	ran(ctx);
	if (!series)
		return 0;
	/* Both are read: a context's address that was computed can't be. */
	barrier_var(third);
	barrier_var(fourth);
	call.out = series->layouts & LAYOUT_CHUNK_4 ? fourth : third;
	call.charged = (flags & CHUNK_FLAGS_ACCOUNT) && memcg_charges(current());
	call_begin(OBSERVER_CALL_CHUNK, &call);
	return 0;
}

SEC("kprobe")
int chunk_return(struct pt_regs *ctx)
{
	ran(ctx);
	return pages_end(ctx, OBSERVER_CALL_CHUNK);
}

SEC("kprobe")
int free_chunk_entry(struct pt_regs *ctx)
{
	ran(ctx);
	forget(PT_REGS_PARM1(ctx) & ~(CHUNK_ALIGN - 1ULL));
	return 0;
}

SEC("kprobe")
int pool_entry(struct pt_regs *ctx)
{
	struct uvm_mem_params params;
	struct observer_call call = {
		.out = PT_REGS_PARM2(ctx),
		.uvm = true,
		.block = 1,
	};
	__u64 page;

	ran(ctx);
	if (!driver(true) ||
	    bpf_probe_read_kernel(&params, sizeof(params), (void *)PT_REGS_PARM1(ctx)))
		return 0;
	/* A GPU's own memory. */
	if (params.backing_gpu)
		return 0;
	page = 1ULL << page_shift;
	call.bytes = (params.size + page - 1) & ~(page - 1);
	call.kind = kind_for(doing(), true, OBSERVER_MANAGED);
	call.charged = params.mm && memcg_charges(current());
	call_begin(OBSERVER_CALL_POOL, &call);
	return 0;
}

SEC("kprobe")
int pool_return(struct pt_regs *ctx)
{
	ran(ctx);
	return pages_end(ctx, OBSERVER_CALL_POOL);
}

/* --- what is the driver's own ------------------------------------------------- */

static __always_inline int start_begin(void)
{
	struct doing *mine = doing_from_now();

	if (mine)
		mine->starts++;
	return 0;
}

SEC("kprobe")
int start_entry(struct pt_regs *ctx)
{
	ran(ctx);
	return start_begin();
}

SEC("kprobe")
int start_return(struct pt_regs *ctx)
{
	struct doing *mine = doing();

	ran(ctx);
	if (mine && mine->starts)
		mine->starts--;
	return 0;
}

static __always_inline bool same(const char *a, const char *b, int size)
{
	int i;

	for (i = 0; i < size; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* "550" of "550.163.01" */
static __always_inline __u32 leading_number(const char *text)
{
	__u32 number = 0;
	int i;

	for (i = 0; i < 4; i++) {
		if (text[i] < '0' || text[i] > '9')
			break;
		number = number * 10 + text[i] - '0';
	}
	return number;
}

static __always_inline void find_text(struct module *mod)
{
	if (bpf_core_field_exists(mod->mem)) {
		nvidia_code = (__u64)BPF_CORE_READ(mod, mem[MOD_TEXT].base);
		nvidia_code_size = BPF_CORE_READ(mod, mem[MOD_TEXT].size);
	} else {
		nvidia_code = (__u64)BPF_CORE_READ(mod, core_layout.base);
		nvidia_code_size = BPF_CORE_READ(mod, core_layout.text_size);
	}
}

/* do_init_module(): a driver's series is known before it takes anything. */
SEC("kprobe")
int init_module_entry(struct pt_regs *ctx)
{
	struct module *mod = (struct module *)PT_REGS_PARM1(ctx);
	struct observer_totals *t = all();
	char name[12] = "", version[8] = "";
	struct series *known;
	__u32 *series;
	unsigned int i;

	ran(ctx);
	bpf_probe_read_kernel_str(name, sizeof(name), &mod->name);
	if (!t)
		return 0;
	if (same(name, "nvidia", sizeof("nvidia")))
		series = &t->nvidia_series, known = &drivers[0];
	else if (same(name, "nvidia_uvm", sizeof("nvidia_uvm")))
		series = &t->uvm_series, known = &drivers[1];
	else
		return 0;
	bpf_probe_read_kernel_str(version, sizeof(version), BPF_CORE_READ(mod, version));
	*series = leading_number(version);
	if (known == &drivers[0])
		find_text(mod);
	known->layouts = 0;
	for (i = 0; i < sizeof(known_series) / sizeof(known_series[0]); i++)
		if (*series >= known_series[i].first && *series <= known_series[i].last)
			*known = known_series[i];
	return start_begin();
}

/* --- cgroups ------------------------------------------------------------------ */

/* cgroup_rmdir(cgrp, path): it is offline for good. */
SEC("raw_tp/cgroup_rmdir")
int cgroup_rmdir(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cgrp = (struct cgroup *)ctx->args[0];
	struct observer_account *account;
	__u64 id;

	/* Other hierarchies have the same ids. */
	if (BPF_CORE_READ(cgrp, root, hierarchy_id))
		return 0;
	id = BPF_CORE_READ(cgrp, kn, id);
	account = bpf_map_lookup_elem(&accounts, &id);
	if (account)
		account_offline(account, id);
	return 0;
}
