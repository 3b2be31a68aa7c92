// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts what jobs take through NVIDIA's driver where the kernel module can't be loaded: pages, managed
 * memory, UVM pools, registered memory, and the metadata of pages. The same functions of the driver are
 * hooked as by the module (kmod/hooks/), here by kprobes. Nothing is limited.
 *
 * A program can't take a lock. Sums are atomic, and an account is charged before its record exists. So
 * an account is right whenever no call is under way, and a reader may find one row a moment older than
 * another.
 *
 * An account lives as long as its cgroup, and after that as long as memory is held for it or for one
 * below it. Readers then add that memory to its nearest online ancestor.
 */
#include "kernel.h"

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "hooks/driver_versions.h"
#include "hooks/nv_status.h"
#include "observer.h"

char LICENSE[] SEC("license") = "GPL";

/* UVM_CPU_CHUNK_ALLOC_FLAGS_ACCOUNT */
#define CHUNK_FLAGS_ACCOUNT	2

/* The release function gets the address of the chunk's reference count; see kmod/hooks/managed.c */
#define HANDLE_ALIGN		8

/* Number of tasks that may raise one peak at the same moment. */
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
 * struct observer_call - what is kept between the entry of a function and its return
 * @bytes: with @metadata
 * @out: where the driver puts the handle
 * @began: in ticks; 0 unless the time that the call takes is counted
 * @kind: enum observer_kind
 * @block: pages per block of the request
 */
struct observer_call {
	__u64 bytes;
	__u64 metadata;
	__u64 out;
	__u64 began;
	__u32 kind;
	__u32 block;
	__u8 uvm;
	__u8 charged;
	__u8 unused[6];
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
 * State of a task inside the driver, freed with the task. No other task looks at it.
 * @under_way: a bit for each of @calls
 * @starts: nesting depth of functions that bring up an adapter, or set a GPU up for managed memory
 */
struct doing {
	struct observer_call calls[OBSERVER_CALLS];
	struct last_failure failure;
	__u32 under_way;
	__u32 starts;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct doing);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct observer_totals);
} totals SEC(".maps");

/* Read by readers alone. */
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
 * Scratch space that the stack has no room for: the ids of a cgroup's ancestors by level, and an
 * account that is being made. Its other members stay 0.
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

/* Layouts of nvidia.ko and of nvidia-uvm.ko; NULL for an unknown series. */
struct series drivers[2];

/*
 * Not static: the verifier checks such a function once, and a static one again at each call, in
 * each program.
 */
#define APART_VERIFIED __noinline

/* The kernel's page size, as a shift; and the length of its tick: time is counted in ticks. */
const volatile __u32 page_shift;
const volatile __u64 tick_ns;

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

APART_VERIFIED int raise_to(__u64 *peak, __u64 value)
{
	__u64 old;
	int i;

	for (i = 0; peak && i < PEAK_TRIES; i++) {
		old = *(volatile __u64 *)peak;
		if (old >= value || __sync_val_compare_and_swap(peak, old, value) == old)
			break;
	}
	return 0;
}

static __always_inline void raise(__u64 *peak, __u64 value)
{
	if (*(volatile __u64 *)peak < value)
		raise_to(peak, value);
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
	/* A pointer that the compiler computes again is NULL to the verifier of 6.1. */
	barrier_var(series);
	return series;
}

/*
 * Counts a run of the program at one of its places, and returns the place. No other one of it runs
 * on this processor.
 */
static __always_inline __u32 ran(void *ctx)
{
	__u32 place = bpf_get_attach_cookie(ctx);
	__u64 *count = bpf_map_lookup_elem(&runs, &place);

	if (count)
		++*count;
	return place;
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

/* Gives up a reference; an unused account goes, and with it ancestors that only it kept. */
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
	/* A thread of the driver's may allocate for a removed cgroup: an ancestor pays. */
	bpf_loop(OBSERVER_LEVEL_MAX + 1, find_online, &way, 0);
	cgrp = way.at;
	if (!cgrp)
		return 0;
	id = BPF_CORE_READ(cgrp, kn, id);
	if (account_at(id))
		return id;

	way.level = BPF_CORE_READ(cgrp, level);
	/* Too deep: no path would be noted, and the previous one be used. */
	if (way.level > OBSERVER_LEVEL_MAX)
		return 0;
	bpf_loop(OBSERVER_LEVEL_MAX + 1, note_id, &way, 0);
	bpf_loop(OBSERVER_LEVEL_MAX + 1, make_one, &way, 0);
	if (way.failed)
		return 0;
	/* Its removal may have been reported already. */
	account = account_at(id);
	if (account && !is_online(cgrp))
		account_offline(account, id);
	return id;
}

/*
 * The account that counts for @task, the current one, made if need be, and its id; NULL without room.
 * nvidia-uvm works for another process at times, and says for which by the active memcg.
 */
static __always_inline struct observer_account *account_of_task(struct task_struct *task, bool uvm,
								__u64 *id)
{
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
	/* The usual case first: a cgroup that already has an account. */
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

/* Amounts to add to an account and to its ancestors, or to subtract. */
struct change {
	__u64 id;
	__s64 bytes;
	__s64 metadata;
	__s64 pinned;
	__s64 charged;
	__s64 managed;
	__s64 allocs;
	__s64 frees;
	__s64 failures;
	__s64 failed;
	__u64 took_ns;
};

/* Returns how much memory of its own a program has registered: the record is of the array. */
static __always_inline __u64 pinned_by(const struct observer_record *record)
{
	return record->kind == OBSERVER_METADATA ?
	       record->bytes / sizeof(__u64) << page_shift : 0;
}

/* Returns the change for a record that is added, @sign 1, or removed, -1. */
static __always_inline struct change change_by(const struct observer_record *record, int sign)
{
	struct change change = {
		.id = record->client.account,
		.bytes = sign * record->bytes,
		.metadata = sign * record->metadata,
		.pinned = sign * pinned_by(record),
	};

	if (record->charged)
		change.charged = change.bytes - change.metadata;
	if (record->kind == OBSERVER_MANAGED)
		change.managed = change.bytes;
	if (record->kind == OBSERVER_SYSTEM) {
		change.allocs = sign > 0;
		change.frees = sign < 0;
	}
	return change;
}

static __always_inline void apply(struct observer_account *account, const struct change *change)
{
	raise(&account->peak, __sync_fetch_and_add(&account->usage, change->bytes) + change->bytes);
	if (change->metadata)
		add(&account->metadata, change->metadata);
	if (change->pinned)
		add(&account->pinned, change->pinned);
	if (change->charged)
		add(&account->charged, change->charged);
	if (change->managed)
		add(&account->managed, change->managed);
	if (change->frees)
		add(&account->frees, change->frees);
	if (change->allocs)
		add(&account->allocs, change->allocs);
	if (change->took_ns) {
		add(&account->alloc_time_ns, change->took_ns);
		raise(&account->alloc_time_max_ns, change->took_ns);
	}
	if (change->failures)
		add(&account->failures, change->failures);
	if (change->failed)
		add(&account->failed, change->failed);
}

static long apply_one(__u32 index __attribute__((unused)), struct change *change)
{
	struct observer_account *account = account_at(change->id);

	if (!account)
		return 1;
	apply(account, change);
	change->id = account->parent;
	return !change->id;
}

/* Applies a change to an account in hand, and to its ancestors, which are looked up. */
static __always_inline void apply_all(struct observer_account *account, struct change *change)
{
	apply(account, change);
	change->id = account->parent;
	if (change->id)
		bpf_loop(OBSERVER_LEVEL_MAX, apply_one, change, 0);
}

static __always_inline void account_charge(struct observer_account *account,
					   const struct observer_record *record, __u64 took_ns)
{
	struct change change = change_by(record, 1);

	change.took_ns = took_ns;
	add(&account->refs, 1);
	add(&account->local, change.bytes);
	apply_all(account, &change);
}

static __always_inline void account_uncharge(const struct observer_record *record)
{
	struct change change = change_by(record, -1);
	struct observer_account *account = account_at(change.id);
	__u64 id = change.id, parent;

	if (!account)
		return;
	parent = account->parent;
	add(&account->local, change.bytes);
	apply_all(account, &change);
	/* It was there until now, for the record. */
	if (__sync_fetch_and_add(&account->refs, -1ULL) != 1)
		return;
	bpf_map_delete_elem(&accounts, &id);
	if (parent)
		account_put(parent);
}

APART_VERIFIED int account_failed(__u64 id, __u64 failures, __u64 failed)
{
	struct change change = { .id = id, .failures = failures, .failed = failed };
	struct observer_account *account = account_at(id);

	if (!account)
		return 0;
	/* The root comes last: readers take a difference there for lost failures. */
	add(&account->failed_local, failed);
	apply_all(account, &change);
	return 0;
}

/* --- clients ------------------------------------------------------------------ */

static __always_inline bool works_for_a_process(struct task_struct *task)
{
	return task->mm && !(task->flags & PF_KTHREAD);
}

/* Likewise, for a client. */
static __always_inline void client_apply(struct observer_client *client,
					 const struct observer_record *record, int sign)
{
	const __u64 bytes = sign * record->bytes, metadata = sign * record->metadata;

	raise(&client->peak, __sync_fetch_and_add(&client->usage, bytes) + bytes);
	add(&client->metadata, metadata);
	add(&client->pinned, sign * pinned_by(record));
	if (record->kind == OBSERVER_MANAGED)
		add(&client->managed, bytes);
	if (record->charged)
		add(&client->charged, bytes - metadata);
	if (record->kind == OBSERVER_SYSTEM)
		add(sign > 0 ? &client->allocs : &client->frees, 1);
}

static __always_inline void client_charge(struct task_struct *task, struct observer_record *record)
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
	__builtin_memcpy(client->comm, task->comm, sizeof(client->comm));
	add(&client->records, 1);
	client_apply(client, record, 1);
}

static __always_inline void client_uncharge(const struct observer_record *record)
{
	/* 6.1 takes no key from elsewhere than the stack and maps. */
	const struct observer_client_key key = record->client;
	struct observer_client *client = bpf_map_lookup_elem(&clients, &key);

	if (!client)
		return;
	client_apply(client, record, -1);
	if (__sync_fetch_and_add(&client->records, -1ULL) != 1)
		return;
	/* The usual end: a process that exits closes the driver. Readers find the rest. */
	if ((current()->flags & PF_EXITING) &&
	    bpf_get_current_pid_tgid() >> 32 == key.tgid)
		bpf_map_delete_elem(&clients, &key);
}

/* --- records ------------------------------------------------------------------ */

/* Takes a record off totals, account and client; its handle may be another record's by now. */
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
	struct task_struct *task = current();
	struct observer_account *account;

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
		account = account_of_task(task, call->uvm, &record.client.account);
		if (!account) {
			untracked(call->bytes);
			return 0;
		}
		if (works_for_a_process(task)) {
			record.client.start_ns = task->group_leader->start_boottime;
			record.client.tgid = task->tgid;
		}
		account_charge(account, &record, call->began ?
			       (bpf_jiffies64() - call->began) * tick_ns : 0);
		if (record.client.tgid)
			client_charge(task, &record);
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
static __always_inline struct doing *doing_from_now(struct task_struct *task)
{
	return bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Same rule as in kmod/hooks/adapter.h. */
static __always_inline enum observer_kind kind_for(struct task_struct *task,
						   const struct doing *doing, bool uvm,
						   enum observer_kind kind)
{
	if (!works_for_a_process(task))
		return uvm && active_memcg(task) ? kind : OBSERVER_DRIVER;
	return doing->starts ? OBSERVER_DRIVER : kind;
}

/*
 * The call that the task begins, in place of one whose end was not seen; NULL without memory for it.
 * A chunk always has an owner: nvidia-uvm takes none to set a GPU up.
 */
static __always_inline struct observer_call *call_begin(enum observer_place of, __u64 bytes, bool uvm,
							enum observer_kind kind)
{
	struct task_struct *task = current();
	struct doing *mine = doing_from_now(task);
	struct observer_call *call;
	struct observer_totals *t;

	if (!mine) {
		untracked(bytes);
		return NULL;
	}
	if ((mine->under_way & 1U << of) && (t = all()))
		add(&t->missed_returns[of], 1);
	mine->under_way |= 1U << of;
	call = &mine->calls[of];
	call->bytes = bytes;
	call->kind = of == OBSERVER_CHUNK ? kind : kind_for(task, mine, uvm, kind);
	call->uvm = uvm;
	return call;
}

/* Records what a call has taken, under the handle that the driver has for it. */
static __always_inline void call_done(const struct observer_call *call)
{
	__u64 handle;

	if (!bpf_probe_read_kernel(&handle, sizeof(handle), (void *)call->out) && handle)
		remember(call, handle);
	else
		untracked(call->bytes);
}

/* --- what the driver has no memory for ------------------------------------------ */

/* Largest number of zones that are read. */
#define ZONES			256

/* Longest time between two tries of the same request. */
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

/* Computes MemAvailable as the kernel does, less the free memory of CMA areas; 0 if not known. */
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
	account = account_of_task(task, call->uvm, &id);
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

/* Runs at the end of a call that @mine began. */
SEC("kprobe")
int call_return(struct pt_regs *ctx)
{
	const __u32 of = ran(ctx) - OBSERVER_HOOKS, status = PT_REGS_RC(ctx);
	struct doing *mine = doing();
	struct observer_call *call;

	if (!mine || of >= OBSERVER_CALLS || !(mine->under_way & 1U << of))
		return 0;
	mine->under_way &= ~(1U << of);
	call = &mine->calls[of];
	if (status == NV_OK) {
		call_done(call);
		if (mine->failure.pages && of != OBSERVER_REGISTER)
			take_back_failure(mine, pages_in(call), call->block);
	} else if (call->kind != OBSERVER_DRIVER && of != OBSERVER_REGISTER) {
		/* nvidia-uvm asks for smaller chunks, down to a page, after a chunk fails. */
		request_failed(call, status == NV_ERR_NO_MEMORY &&
			       (of != OBSERVER_CHUNK || call->block == 1));
	}
	return 0;
}

/*
 * Just before the memory is freed, so that its handle can't be another's yet. That of a chunk has
 * low bits in use; os_unlock_user_pages(count, array) has it second.
 */
SEC("kprobe")
int free_entry(struct pt_regs *ctx)
{
	const __u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx);

	forget((ran(ctx) == OBSERVER_UNREGISTER ? second : first) & ~(HANDLE_ALIGN - 1ULL));
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

/* The last argument of 8 to 10. */
static __always_inline __u64 last_argument(struct pt_regs *ctx, int count)
{
#if defined(__TARGET_ARCH_x86)
	return stack_argument(ctx, count - 7);
#else
	return count == 8 ? ((struct user_pt_regs *)ctx)->regs[7] : stack_argument(ctx, count - 9);
#endif
}

SEC("kprobe")
int alloc_pages_entry(struct pt_regs *ctx)
{
	const __u32 count = PT_REGS_PARM2(ctx);
	__u64 third = PT_REGS_PARM3(ctx), fourth = PT_REGS_PARM4(ctx);
	const struct series *series = driver(false);
	__u64 page_size, pages = count, out;
	struct observer_call *call;
	__u8 contiguous;
	__u32 block = 1;

	ran(ctx);
	if (!series)
		return 0;
	/* Both are read: a context's address that was computed can't be. */
	barrier_var(third);
	barrier_var(fourth);
	if (series->layouts & LAYOUT_ALLOC_10) {
		page_size = third;
		contiguous = fourth;
		out = last_argument(ctx, 10);
	} else {
		page_size = 1ULL << page_shift;
		contiguous = third;
		out = last_argument(ctx, series->layouts & LAYOUT_ALLOC_9 ? 9 : 8);
	}
	if (contiguous && count) {
		pages = power_of_two(pages);
	} else if (!contiguous && page_size >> page_shift > 1) {
		block = power_of_two(((page_size - 1) >> page_shift) + 1);
		pages = (pages + block - 1) & ~(block - 1ULL);
	}
	call = call_begin(OBSERVER_ALLOC, pages << page_shift, false, OBSERVER_SYSTEM);
	if (!call)
		return 0;
	call->metadata = call->kind == OBSERVER_SYSTEM ?
			 (__u64)count * series->sizes.page + series->sizes.object : 0;
	call->bytes += call->metadata;
	call->out = out;
	call->block = block;
	call->began = bpf_jiffies64();
	return 0;
}

/* os_lock_user_pages(address, count, array, flags): the array has a pointer for each page. */
SEC("kprobe")
int register_entry(struct pt_regs *ctx)
{
	const __u64 bytes = PT_REGS_PARM2(ctx) * sizeof(__u64);
	const __u64 out = PT_REGS_PARM3(ctx);
	struct observer_call *call;

	ran(ctx);
	call = driver(false) ? call_begin(OBSERVER_REGISTER, bytes, false, OBSERVER_METADATA) : NULL;
	if (!call)
		return 0;
	call->metadata = bytes;
	call->out = out;
	return 0;
}

/* --- nvidia-uvm.ko ------------------------------------------------------------ */

/* Does the kernel's memory controller charge the task's cgroup? It never charges its root. */
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
	struct observer_call *call;

	ran(ctx);
	if (!series)
		return 0;
	/* Both are read: a context's address that was computed can't be. */
	barrier_var(third);
	barrier_var(fourth);
	call = call_begin(OBSERVER_CHUNK, size, true, OBSERVER_MANAGED);
	if (!call)
		return 0;
	call->out = series->layouts & LAYOUT_CHUNK_4 ? fourth : third;
	call->block = size >> page_shift;
	call->charged = (flags & CHUNK_FLAGS_ACCOUNT) && memcg_charges(current());
	return 0;
}

SEC("kprobe")
int pool_entry(struct pt_regs *ctx)
{
	const __u64 page = 1ULL << page_shift, out = PT_REGS_PARM2(ctx);
	struct uvm_mem_params params;
	struct observer_call *call;

	ran(ctx);
	if (!driver(true) ||
	    bpf_probe_read_kernel(&params, sizeof(params), (void *)PT_REGS_PARM1(ctx)))
		return 0;
	/* A GPU's own memory. */
	if (params.backing_gpu)
		return 0;
	call = call_begin(OBSERVER_POOL, (params.size + page - 1) & ~(page - 1), true,
			  OBSERVER_MANAGED);
	if (!call)
		return 0;
	call->out = out;
	call->block = 1;
	call->charged = params.mm && memcg_charges(current());
	return 0;
}

/* --- the driver's own memory -------------------------------------------------- */

SEC("kprobe")
int start_entry(struct pt_regs *ctx)
{
	struct doing *mine = doing_from_now(current());

	ran(ctx);
	if (mine)
		mine->starts++;
	return 0;
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

/* module_load(module): a driver's series is known before its code runs. */
SEC("raw_tp/module_load")
int module_load(struct bpf_raw_tracepoint_args *ctx)
{
	struct module *mod = (struct module *)ctx->args[0];
	struct observer_totals *t = all();
	char name[12] = "", version[8] = "";
	struct series *known;
	__u32 *series;
	unsigned int i;

	bpf_probe_read_kernel_str(name, sizeof(name), &mod->name);
	if (!t)
		return 0;
	if (!bpf_strncmp(name, sizeof(name), "nvidia"))
		series = &t->nvidia_series, known = &drivers[0];
	else if (!bpf_strncmp(name, sizeof(name), "nvidia_uvm"))
		series = &t->uvm_series, known = &drivers[1];
	else
		return 0;
	bpf_probe_read_kernel_str(version, sizeof(version), BPF_CORE_READ(mod, version));
	*series = leading_number(version);
	known->layouts = 0;
	for (i = 0; i < sizeof(known_series) / sizeof(known_series[0]); i++)
		if (*series >= known_series[i].first && *series <= known_series[i].last)
			*known = known_series[i];
	return 0;
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
