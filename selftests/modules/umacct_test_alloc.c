// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls the loaded NVIDIA driver's own page allocator, for the shapes that no
 * ioctl reaches without a GPU and for measuring what a call costs.
 *
 * One open file of /dev/umacct_test_alloc is one holder; what it holds is freed
 * when the file is closed. Commands are written, the result is read:
 *
 *	alloc PAGES PAGE_SIZE CONTIGUOUS [COUNT]
 *	free
 *	bench PAGES PAGE_SIZE CONTIGUOUS ROUNDS
 *	crowd PAGES PAGE_SIZE CONTIGUOUS ROUNDS
 *	managed PAGE_SIZE ROUNDS
 *	retry PAGES PAGE_SIZE CONTIGUOUS
 *	keep PAGES PAGE_SIZE CONTIGUOUS
 *	memory
 *	hide SYMBOL
 *	unhide
 *	native 0|1
 *	hold SYMBOL
 *	release
 *	inside SYMBOL PAGES PAGE_SIZE CONTIGUOUS
 *	outside
 *	fault PID FD ADDRESS SIZE COUNT
 *	heap SIZE COUNT
 *	register PAGES
 *	direct SYMBOL
 *	undirect
 *	fail SYMBOL COUNT [RESULT [AFTER]]
 *	race ROUNDS
 *
 * "bench" tells what an allocation and its free take, each freed at once; "crowd", when
 * all are freed at the end, the oldest first; "managed", of a chunk of managed memory of
 * nvidia-uvm's, which has to be loaded. "retry" does what the driver does when it is
 * refused: it asks for the same pages in smaller and smaller blocks, down to single pages,
 * rounded up to whole blocks each time.
 * "heap" takes blocks of the driver's heap, with interrupts off. "register" gives the process
 * that many pages and registers them with the driver, once for each holder, until "free".
 * "keep" allocates, and sleeps before it returns to user space until "release".
 * "memory" says what the kernel's own users of these figures are told about the machine's
 * memory, in bytes. "hide" puts a probe on a function that keeps its calls from the probes
 * that were there before, by kprobes, until "unhide". "native 1" has the driver ask the
 * kernel to charge its pages, as its releases from 615 on do, for whoever calls the
 * function that computes the mask. From "hold" to "release" whoever calls that function,
 * of at most three arguments and with a probe's place at its first instruction, sleeps
 * before he enters it. "direct" makes a direct call from that function, until "undirect", as
 * a BPF program does that runs at a function's end. "fail" has COUNT calls of a function
 * return RESULT at once, or 0, as if memory had run out: the next ones, or those after AFTER
 * others. "race" has this process and a thread change the same word without a lock, that many
 * times.
 *
 * A call is made in the writer's context, or, with "thread " before the
 * command, in a kernel thread's. PAGE_SIZE counts from driver 545 on; there, for
 * memory that is not contiguous, PAGES must be whole blocks of PAGE_SIZE, as the
 * driver's own callers see to: 550 walks past its page table otherwise.
 *
 * For virtual machines only: on a CPU that enforces IBT the driver's entry points
 * can't be called from here.
 */
#include <linux/completion.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#ifdef CONFIG_ARM64
#include <asm/insn.h>

/* A landing pad for calls. */
#define BTI_C			0xd503245f
#else
#include <asm/ibt.h>
#include <asm/linkage.h>
#endif

#define DRIVER_VERSION_FILE	"/sys/module/nvidia/version"

/* The first driver whose allocator takes a page size. */
#define FIRST_WITH_PAGE_SIZE	545

/* The first whose chunks of managed memory are of a NUMA node. */
#define FIRST_WITH_CHUNK_NODE	545

/* NV_ERR_NO_MEMORY */
#define NO_MEMORY		0x51

#define CACHE_TYPE_CACHED	0

/* NV_LOCK_USER_PAGES_FLAGS_WRITE_YES */
#define REGISTER_WRITE		1

/* UVM_CPU_CHUNK_ALLOC_FLAGS_ACCOUNT: as umacct has it, so that it adds no charge. */
#define CHUNK_ACCOUNT		2
#define ANY_NODE		(-1)
#define MAX_PAGES		(1u << 20)
#define MAX_ROUNDS		100000

typedef struct module *(*module_of_fn)(unsigned long address);
typedef u32 (*alloc_fn)(void *nv, u32 pages, u64 page_size, u8 contiguous, u32 cache_type,
			u8 zeroed, u8 unencrypted, s32 node, u64 *ptes, void **handle);
typedef u32 (*alloc_535_fn)(void *nv, u32 pages, u8 contiguous, u32 cache_type,
			    u8 zeroed, u8 unencrypted, s32 node, u64 *ptes, void **handle);
typedef u32 (*chunk_alloc_fn)(u32 size, u32 flags, int node, void **chunk);
typedef u32 (*chunk_alloc_535_fn)(u32 size, u32 flags, void **chunk);
typedef void (*chunk_free_fn)(void *chunk);
typedef struct file *(*get_file_fn)(struct task_struct *task, unsigned int fd);
typedef void *(*find_range_fn)(void *va_space, u64 address);
typedef u32 (*find_block_fn)(void *va_space, void *range, u64 address, void **block);
typedef u32 (*serve_fn)(unsigned long processor, void *block, void *retry, void *context);
typedef u32 (*heap_alloc_fn)(void **address, u64 size);
typedef void (*heap_free_fn)(void *address);
typedef u32 (*register_fn)(unsigned long address, u64 pages, void **array, u32 flags);
/* Drivers before 580 take no flags. */
typedef u32 (*unregister_fn)(u64 pages, void *array, u32 flags);
typedef u32 (*free_fn)(void *nv, u32 pages, u8 contiguous, u32 cache_type, void *handle);

struct shape {
	u32 pages;
	u32 page_size;
	u32 contiguous;
	u32 count;
	bool managed;
};

struct block {
	struct list_head list;
	void *handle;
	u32 pages;
	u8 contiguous;
	bool managed;
};

struct holder {
	struct mutex lock;
	struct list_head blocks;
	struct module *driver;		/* kept loaded */
	unsigned int driver_version;
	void *alloc;
	free_fn free;
	void *chunk_alloc;
	chunk_free_fn chunk_free;
	void *heap;			/* blocks, each with the next one's address */
	void *registered;		/* the driver's array of pages that are registered */
	u64 registered_pages;
	char result[256];
	size_t result_length;
};

struct samples {
	u64 *alloc;
	u64 *free;
	u32 count;
};

static unsigned long (*find_symbol)(const char *name);

/*
 * The kernel's own lookup isn't exported; a probe on it says where it is. A probe
 * on the driver's functions would say so too, but would leave umacct's probe there
 * in the shape for several, which costs more, and benchmarks go through here.
 */
static int init_find_symbol(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	int err = register_kprobe(&probe);

	if (err)
		return err;
	unregister_kprobe(&probe);
	find_symbol = (void *)probe.addr;
	return 0;
}

/*
 * Returns the module with a reference held. An open file of the driver's would pin it, too, but
 * counts for the holder.
 */
static struct module *get_module_of(unsigned long function)
{
	module_of_fn find = (module_of_fn)find_symbol("__module_address");
	struct module *module = NULL;

	if (!find || !function)
		return NULL;
	preempt_disable();
	module = find(function);
	if (module && !try_module_get(module))
		module = NULL;
	preempt_enable();
	return module;
}

static unsigned int read_driver_version(void)
{
	struct file *file = filp_open(DRIVER_VERSION_FILE, O_RDONLY, 0);
	unsigned int version = 0;
	char text[32] = "";
	loff_t pos = 0;

	if (IS_ERR(file))
		return 0;
	if (kernel_read(file, text, sizeof(text) - 1, &pos) > 0 &&
	    sscanf(text, "%u", &version) != 1)
		version = 0;
	filp_close(file, NULL);
	return version;
}

static u32 call_chunk_alloc(struct holder *holder, u32 size, void **chunk)
{
	if (holder->driver_version >= FIRST_WITH_CHUNK_NODE)
		return ((chunk_alloc_fn)holder->chunk_alloc)(size, CHUNK_ACCOUNT, ANY_NODE,
							     chunk);
	return ((chunk_alloc_535_fn)holder->chunk_alloc)(size, CHUNK_ACCOUNT, chunk);
}

static u32 call_alloc(struct holder *holder, const struct shape *shape, u64 *ptes, void **handle)
{
	if (shape->managed)
		return call_chunk_alloc(holder, shape->page_size, handle);
	if (holder->driver_version >= FIRST_WITH_PAGE_SIZE)
		return ((alloc_fn)holder->alloc)(NULL, shape->pages, shape->page_size,
						 shape->contiguous, CACHE_TYPE_CACHED, true, false,
						 ANY_NODE, ptes, handle);
	return ((alloc_535_fn)holder->alloc)(NULL, shape->pages, shape->contiguous,
					     CACHE_TYPE_CACHED, true, false, ANY_NODE, ptes,
					     handle);
}

/* The memory stays the process's. */
static void unregister(struct holder *holder)
{
	unregister_fn give = (unregister_fn)find_symbol("nvidia:os_unlock_user_pages");

	if (holder->registered)
		give(holder->registered_pages, holder->registered, REGISTER_WRITE);
	holder->registered = NULL;
}

static void free_blocks(struct holder *holder)
{
	heap_free_fn give = (heap_free_fn)find_symbol("nvidia:os_free_mem");
	struct block *block, *next;
	void *heap;

	while ((heap = holder->heap)) {
		holder->heap = *(void **)heap;
		give(heap);
	}
	unregister(holder);

	list_for_each_entry_safe(block, next, &holder->blocks, list) {
		if (block->managed)
			holder->chunk_free(block->handle);
		else
			holder->free(NULL, block->pages, block->contiguous, CACHE_TYPE_CACHED,
				     block->handle);
		list_del(&block->list);
		kfree(block);
	}
}

static int add_block(struct holder *holder, const struct shape *shape, u64 *ptes, u32 *status)
{
	struct block *block = kzalloc(sizeof(*block), GFP_KERNEL);

	if (!block)
		return -ENOMEM;
	*status = call_alloc(holder, shape, ptes, &block->handle);
	if (*status) {
		kfree(block);
		return 0;
	}
	block->pages = shape->pages;
	block->contiguous = shape->contiguous;
	block->managed = shape->managed;
	list_add(&block->list, &holder->blocks);
	return 0;
}

static __printf(2, 3) void set_result(struct holder *holder, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	holder->result_length = vscnprintf(holder->result, sizeof(holder->result), format, args);
	va_end(args);
}

static int run_alloc(struct holder *holder, const struct shape *shape)
{
	u64 *ptes = kvcalloc(shape->pages, sizeof(*ptes), GFP_KERNEL);
	u32 status = 0;
	u32 done = 0;
	int err = 0;

	if (!ptes)
		return -ENOMEM;
	while (done < shape->count && !err) {
		err = add_block(holder, shape, ptes, &status);
		if (status)
			break;
		done++;
		cond_resched();
	}
	kvfree(ptes);
	set_result(holder, "status=0x%x count=%u\n", status, done);
	return err;
}

static int compare_u64(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

/*
 * The mean of the middle half: timer interrupts land in the upper quarter, and a
 * clock coarser than one instruction (arm64 ticks every 16 ns) averages out.
 */
static u64 middle_mean(const u64 *sorted, u32 count)
{
	u32 first = count / 4, last = count - count / 4;
	u64 sum = 0;
	u32 i;

	for (i = first; i < last; i++)
		sum += sorted[i];
	return div_u64(sum, last - first);
}

static void report_samples(struct holder *holder, struct samples *samples)
{
	u32 middle = samples->count / 2;

	sort(samples->alloc, samples->count, sizeof(u64), compare_u64, NULL);
	sort(samples->free, samples->count, sizeof(u64), compare_u64, NULL);
	set_result(holder,
		   "status=0x0 alloc_min=%llu alloc_median=%llu alloc_mean=%llu free_min=%llu free_median=%llu free_mean=%llu\n",
		   samples->alloc[0], samples->alloc[middle],
		   middle_mean(samples->alloc, samples->count),
		   samples->free[0], samples->free[middle],
		   middle_mean(samples->free, samples->count));
}

static u32 sample_alloc(struct holder *holder, const struct shape *shape, u64 *ptes,
			u64 *took, void **handle)
{
	u64 start = ktime_get_ns();
	u32 status = call_alloc(holder, shape, ptes, handle);

	*took = ktime_get_ns() - start;
	return status;
}

static void sample_free(struct holder *holder, const struct shape *shape, u64 *took,
			void *handle)
{
	u64 start = ktime_get_ns();

	if (shape->managed)
		holder->chunk_free(handle);
	else
		holder->free(NULL, shape->pages, shape->contiguous, CACHE_TYPE_CACHED, handle);
	*took = ktime_get_ns() - start;
}

/* Each is freed at once, or the first when all are there, and so on. */
static int run_bench(struct holder *holder, const struct shape *shape, bool together)
{
	struct samples samples = {
		.alloc = kvcalloc(shape->count, sizeof(u64), GFP_KERNEL),
		.free = kvcalloc(shape->count, sizeof(u64), GFP_KERNEL),
	};
	void **handles = kvcalloc(shape->count, sizeof(*handles), GFP_KERNEL);
	u64 *ptes = kvcalloc(shape->pages, sizeof(*ptes), GFP_KERNEL);
	u32 status = 0;
	u32 freed = 0;
	int err = 0;

	if (!samples.alloc || !samples.free || !handles || !ptes) {
		err = -ENOMEM;
		goto out;
	}
	while (samples.count < shape->count && !status) {
		u32 at = samples.count;

		status = sample_alloc(holder, shape, ptes, &samples.alloc[at], &handles[at]);
		if (status)
			break;
		samples.count++;
		if (!together)
			sample_free(holder, shape, &samples.free[freed++], handles[at]);
		cond_resched();
	}
	for (; freed < samples.count; freed++) {
		sample_free(holder, shape, &samples.free[freed], handles[freed]);
		cond_resched();
	}
	if (status)
		set_result(holder, "status=0x%x\n", status);
	else
		report_samples(holder, &samples);
out:
	kvfree(ptes);
	kvfree(handles);
	kvfree(samples.free);
	kvfree(samples.alloc);
	return err;
}

static int find_chunk_functions(struct holder *holder)
{
	holder->chunk_alloc = (void *)find_symbol("nvidia_uvm:uvm_cpu_chunk_alloc");
	holder->chunk_free = (chunk_free_fn)find_symbol("nvidia_uvm:uvm_cpu_chunk_free");
	return holder->chunk_alloc && holder->chunk_free ? 0 : -ENODEV;
}

static int run_managed(struct holder *holder, const char *arguments)
{
	struct shape shape = { .pages = 1, .managed = true };

	if (sscanf(arguments, "%u %u", &shape.page_size, &shape.count) != 2 ||
	    shape.page_size < PAGE_SIZE || !is_power_of_2(shape.page_size) ||
	    !shape.count || shape.count > MAX_ROUNDS)
		return -EINVAL;
	return find_chunk_functions(holder) ?: run_bench(holder, &shape, false);
}

static int run_heap(struct holder *holder, const char *arguments)
{
	heap_alloc_fn take = (heap_alloc_fn)find_symbol("nvidia:os_alloc_mem");
	u32 size, count, done, status = 0;
	void **block;

	if (sscanf(arguments, "%u %u", &size, &count) != 2 || size < sizeof(block))
		return -EINVAL;
	for (done = 0; done < count; done++) {
		local_irq_disable();
		status = take((void **)&block, size);
		local_irq_enable();
		if (status)
			break;
		*block = holder->heap;
		holder->heap = block;
	}
	set_result(holder, "status=0x%x count=%u\n", status, done);
	return 0;
}

static int run_register(struct holder *holder, const char *arguments)
{
	register_fn take = (register_fn)find_symbol("nvidia:os_lock_user_pages");
	unsigned long address;
	u32 pages, status;

	if (!take || holder->registered || !current->mm || kstrtou32(arguments, 0, &pages) ||
	    !pages || pages > MAX_PAGES)
		return -EINVAL;
	address = vm_mmap(NULL, 0, pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(address))
		return address;
	status = take(address, pages, &holder->registered, REGISTER_WRITE);
	holder->registered_pages = pages;
	set_result(holder, "status=0x%x\n", status);
	return 0;
}

static DECLARE_COMPLETION(let_go);

/* Sleeps before it returns, as a caller of the driver's might. */
static int run_keep(struct holder *holder, const struct shape *shape)
{
	int err;

	reinit_completion(&let_go);
	err = run_alloc(holder, shape);
	return err ?: wait_for_completion_killable(&let_go);
}

static int parse_shape(const char *text, struct shape *shape)
{
	*shape = (struct shape) { .count = 1 };
	if (sscanf(text, "%u %u %u %u", &shape->pages, &shape->page_size, &shape->contiguous,
		   &shape->count) < 3)
		return -EINVAL;
	if (!shape->pages || shape->pages > MAX_PAGES || shape->contiguous > 1 ||
	    shape->page_size < PAGE_SIZE || !is_power_of_2(shape->page_size) ||
	    !shape->count || shape->count > MAX_ROUNDS)
		return -EINVAL;
	return 0;
}

static bool driver_can_walk(const struct holder *holder, const struct shape *shape)
{
	u32 block_pages = 1 << get_order(shape->page_size);

	return shape->contiguous || holder->driver_version < FIRST_WITH_PAGE_SIZE ||
	       shape->pages % block_pages == 0;
}

/* Retries in one go, as the resource manager does: each size is aligned anew. */
static int run_retry(struct holder *holder, const struct shape *shape)
{
	struct shape smaller = *shape;
	int err;

	for (;;) {
		smaller.pages = round_up(shape->pages, 1 << get_order(smaller.page_size));
		err = run_alloc(holder, &smaller);
		if (err || smaller.page_size == PAGE_SIZE || !list_empty(&holder->blocks))
			return err;
		smaller.page_size = max_t(u32, smaller.page_size >> 5, PAGE_SIZE);
	}
}

/* --- functions that fail --- */

static DEFINE_MUTEX(failure_lock);
static atomic_t failures_left;
static atomic_t calls_before;
static long failure_result;

/* Replaces the body of a function that is to fail: its result is already in the register. */
static noinline __used void return_at_once(void)
{
	barrier();
}

static int fail_function(struct kprobe *probe, struct pt_regs *regs)
{
	if (atomic_dec_if_positive(&calls_before) >= 0 ||
	    atomic_dec_if_positive(&failures_left) < 0)
		return 0;
	regs_set_return_value(regs, failure_result);
	instruction_pointer_set(regs, (unsigned long)return_at_once);
	return 1;
}
NOKPROBE_SYMBOL(fail_function);

/* Its presence keeps the kernel from replacing the probe by a jump that ignores us. */
static void after_function(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static char failure_symbol[64];
static struct kprobe failure;

static void end_failures(void)
{
	if (failure.symbol_name || failure.addr)
		unregister_kprobe(&failure);
	failure = (struct kprobe) { };
}

static int run_fail(struct holder *holder, const char *arguments)
{
	unsigned int count, after = 0;
	int err = -EINVAL, result = 0;

	if (sscanf(arguments, "%63s %u %d %u", failure_symbol, &count, &result, &after) < 2)
		return -EINVAL;
	mutex_lock(&failure_lock);
	end_failures();
	failure_result = result;
	atomic_set(&calls_before, after);
	atomic_set(&failures_left, count);
	failure = (struct kprobe) {
		.addr = (void *)find_symbol(failure_symbol),
		.pre_handler = fail_function,
		.post_handler = after_function,
	};
	if (failure.addr)
		err = register_kprobe(&failure);
	if (err)
		failure = (struct kprobe) { };
	mutex_unlock(&failure_lock);
	set_result(holder, "status=0x0\n");
	return err;
}

static void run_memory(struct holder *holder)
{
	struct sysinfo info;

	si_meminfo(&info);
	set_result(holder, "status=0x0 total=%llu free=%llu available=%llu\n",
		   (u64)info.totalram << PAGE_SHIFT, (u64)info.freeram << PAGE_SHIFT,
		   (u64)si_mem_available() << PAGE_SHIFT);
}

/* Goes on behind the probe: the kprobe core calls no other handler then. */
static int step_over(struct kprobe *probe, struct pt_regs *regs)
{
#ifdef CONFIG_X86_64
	instruction_pointer_set(regs, (unsigned long)probe->addr + MCOUNT_INSN_SIZE);
#else
	instruction_pointer_set(regs, (unsigned long)probe->addr + AARCH64_INSN_SIZE);
#endif
	return 1;
}

static struct kprobe hiding = { .pre_handler = step_over };
static char hidden[64];

static void run_unhide(void)
{
	if (!hiding.symbol_name)
		return;
	unregister_kprobe(&hiding);
	hiding = (struct kprobe) { .pre_handler = step_over };
}

static int run_hide(const char *symbol)
{
	int err;

	if (hiding.symbol_name || sscanf(symbol, "%63s", hidden) != 1)
		return -EINVAL;
	hiding.symbol_name = hidden;
	err = register_kprobe(&hiding);
	if (err)
		hiding = (struct kprobe) { .pre_handler = step_over };
	return err;
}

static int ask_to_charge(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	regs_set_return_value(regs, regs_return_value(regs) | (__force u32)__GFP_ACCOUNT);
	return 0;
}

static struct kretprobe charging;

static int run_native(bool on)
{
	int err;

	if (on == (bool)charging.handler)
		return -EINVAL;
	if (!on) {
		unregister_kretprobe(&charging);
		charging = (struct kretprobe) { 0 };
		return 0;
	}
	charging.kp.symbol_name = "nvidia:nv_compute_gfp_mask";
	charging.handler = ask_to_charge;
	charging.maxactive = 64;
	err = register_kretprobe(&charging);
	if (err)
		charging = (struct kretprobe) { 0 };
	return err;
}

/* Any held function: none of them has more arguments than this. */
typedef unsigned long (*any_fn)(unsigned long, unsigned long, unsigned long, unsigned long);

static struct kprobe holding;
static char held[64];
static any_fn held_function;
static struct completion released;

/* The probe is gone when a task is released: it enters the function itself. */
static unsigned long held_call(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	any_fn function = held_function;

	wait_for_completion(&released);
	return function(a, b, c, d);
}

static int go_to_sleep(struct kprobe *probe, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)held_call);
	return 1;
}

static void run_release(void)
{
	complete_all(&let_go);
	if (!holding.pre_handler)
		return;
	unregister_kprobe(&holding);
	holding = (struct kprobe) { 0 };
	complete_all(&released);
}

#ifdef CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS
/*
 * Goes on behind the function's ftrace site, wherever others of ftrace's users want its
 * caller to go.
 */
void go_around(void);
/* The assembler's alone. */
static unsigned long go_around_to __used;

asm("	.pushsection .text, \"ax\", @progbits\n"
	"	.type	go_around, @function\n"
	"	.globl	go_around\n"
	"go_around:\n"
#ifdef CONFIG_X86_64
	ASM_ENDBR
	"	movq	go_around_to(%rip), %r11\n"
	"	movq	%r11, (%rsp)\n"
	ASM_RET
#else
	"	hint	34\n"
	"	mov	x30, x9\n"
	"	adrp	x16, go_around_to\n"
	"	ldr	x16, [x16, #:lo12:go_around_to]\n"
	"	ret	x16\n"
#endif
	"	.size	go_around, . - go_around\n"
	"	.popsection\n");

static struct ftrace_ops going_around;

static unsigned long behind_site(const struct kprobe *kp)
{
#ifdef CONFIG_X86_64
	return (unsigned long)kp->addr + MCOUNT_INSN_SIZE;
#else
	bool landing_pad = le32_to_cpu((__force __le32)kp->opcode) == BTI_C;

	return (unsigned long)kp->addr + (landing_pad ? 3 : 2) * AARCH64_INSN_SIZE;
#endif
}

static int register_direct(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	return register_ftrace_direct(&going_around, (unsigned long)go_around);
#else
	return register_ftrace_direct_multi(&going_around, (unsigned long)go_around);
#endif
}

static void run_undirect(void)
{
	if (!go_around_to)
		return;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	unregister_ftrace_direct(&going_around, (unsigned long)go_around, true);
#else
	unregister_ftrace_direct_multi(&going_around, (unsigned long)go_around);
	ftrace_free_filter(&going_around);
#endif
	/* A task may be on its way through it. */
	synchronize_rcu_tasks();
	go_around_to = 0;
}

static int run_direct(const char *text)
{
	struct kprobe kp = { .flags = KPROBE_FLAG_DISABLED };
	char symbol[64];
	int err;

	if (go_around_to || sscanf(text, "%63s", symbol) != 1)
		return -EINVAL;
	kp.symbol_name = symbol;
	err = register_kprobe(&kp);
	if (err)
		return err;
	unregister_kprobe(&kp);
	go_around_to = behind_site(&kp);
	memset(&going_around, 0, sizeof(going_around));
	err = ftrace_set_filter_ip(&going_around, (unsigned long)kp.addr, 0, 0);
	if (!err)
		err = register_direct();
	if (!err)
		return 0;
	ftrace_free_filter(&going_around);
	go_around_to = 0;
	return err;
}
/* --- a fault of a GPU --- */

static struct kprobe serving;
static struct holder *serving_holder;
static struct shape serving_shape;
static u32 served;

/* Replaces all of uvm_va_block_service_locked() except umacct's hook in it. */
static u32 serve(unsigned long processor, void *block, void *retry, void *context)
{
	u32 status = 0;

	while (served < serving_shape.count && !status) {
		if (add_block(serving_holder, &serving_shape, NULL, &status))
			return NO_MEMORY;
		served += !status;
	}
	return status;
}

static int go_serve(struct kprobe *probe, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)serve);
	return 1;
}
NOKPROBE_SYMBOL(go_serve);

static int probe_serving(const char *symbol)
{
	struct kprobe kp = { .symbol_name = symbol, .flags = KPROBE_FLAG_DISABLED };
	int err = register_kprobe(&kp);

	if (err)
		return err;
	unregister_kprobe(&kp);
	serving = (struct kprobe) {
		.addr = (void *)behind_site(&kp),
		.pre_handler = go_serve,
		.post_handler = after_function,
	};
	return register_kprobe(&serving);
}

/* The driver keeps the kind of an open file in the address's lowest bits. */
static void *va_space_of(struct file *file)
{
	return (void *)((unsigned long)file->private_data & ~3ul);
}

static struct file *file_of(pid_t pid, unsigned int fd)
{
	/* It isn't for modules. */
	get_file_fn get_file = (get_file_fn)find_symbol("fget_task");
	struct task_struct *task = get_pid_task(find_vpid(pid), PIDTYPE_TGID);
	struct file *file = NULL;

	if (!task)
		return NULL;
	if (get_file)
		file = get_file(task, fd);
	put_task_struct(task);
	return file;
}

static u32 fault_at(void *va_space, u64 address)
{
	find_range_fn find_range = (find_range_fn)find_symbol("nvidia_uvm:uvm_va_range_find");
	find_block_fn find_block =
		(find_block_fn)find_symbol("nvidia_uvm:uvm_va_block_find_create_in_range");
	serve_fn serve_fault = (serve_fn)find_symbol("nvidia_uvm:uvm_va_block_service_locked");
	void *block;
	u32 status;

	status = find_block(va_space, find_range(va_space, address), address, &block);
	return status ?: serve_fault(0, block, NULL, NULL);
}

static int run_fault(struct holder *holder, const char *text)
{
	struct shape *shape = &serving_shape;
	unsigned int fd;
	struct file *file;
	u64 address;
	u32 status;
	int pid, err;

	*shape = (struct shape) { .pages = 1, .managed = true };
	if (sscanf(text, "%d %u %llx %u %u", &pid, &fd, &address, &shape->page_size,
		   &shape->count) != 5 || !is_power_of_2(shape->page_size))
		return -EINVAL;
	err = find_chunk_functions(holder) ?:
	      probe_serving("nvidia_uvm:uvm_va_block_service_locked");
	if (err)
		return err;
	serving_holder = holder;
	served = 0;
	file = file_of(pid, fd);
	if (file) {
		status = fault_at(va_space_of(file), address);
		set_result(holder, "status=0x%x count=%u\n", status, served);
		fput(file);
	} else {
		err = -EBADF;
	}
	unregister_kprobe(&serving);
	return err;
}
#else
static int run_fault(struct holder *holder, const char *text)
{
	return -EOPNOTSUPP;
}

static void run_undirect(void)
{
}

static int run_direct(const char *text)
{
	return -EOPNOTSUPP;
}
#endif

static int run_hold(const char *symbol)
{
	int err;

	if (holding.pre_handler || sscanf(symbol, "%63s", held) != 1)
		return -EINVAL;
	held_function = (any_fn)find_symbol(held);
	if (!held_function)
		return -ENOENT;
	init_completion(&released);
	holding.symbol_name = held;
	holding.pre_handler = go_to_sleep;
	err = register_kprobe(&holding);
	if (err)
		holding = (struct kprobe) { 0 };
	return err;
}

/* --- an allocation in whatever task calls a function --- */

static struct kprobe inside;
static char inside_symbol[64];
static any_fn inside_function;
static struct holder *inside_holder;
static struct shape inside_shape;
static atomic_t inside_wanted;
static u32 inside_status;

static unsigned long inside_call(unsigned long a, unsigned long b, unsigned long c,
				 unsigned long d)
{
	const struct shape *shape = &inside_shape;
	u64 *ptes = kvcalloc(shape->pages, sizeof(*ptes), GFP_KERNEL);
	void *handle;

	if (ptes)
		inside_status = call_alloc(inside_holder, shape, ptes, &handle);
	if (ptes && !inside_status)
		inside_holder->free(NULL, shape->pages, shape->contiguous, CACHE_TYPE_CACHED,
				    handle);
	kvfree(ptes);
	/* The probe lets this call through. */
	return inside_function(a, b, c, d);
}

static int go_inside(struct kprobe *probe, struct pt_regs *regs)
{
	if (atomic_dec_if_positive(&inside_wanted) < 0)
		return 0;
	instruction_pointer_set(regs, (unsigned long)inside_call);
	return 1;
}
NOKPROBE_SYMBOL(go_inside);

static void run_outside(void)
{
	if (!inside.pre_handler)
		return;
	unregister_kprobe(&inside);
	inside = (struct kprobe) { 0 };
}

static int run_inside(struct holder *holder, const char *text)
{
	int err;

	if (inside.pre_handler || sscanf(text, "%63s", inside_symbol) != 1 ||
	    parse_shape(text + strlen(inside_symbol), &inside_shape) ||
	    !driver_can_walk(holder, &inside_shape))
		return -EINVAL;
	inside_function = (any_fn)find_symbol(inside_symbol);
	if (!inside_function)
		return -ENOENT;
	inside_holder = holder;
	inside_status = U32_MAX;
	atomic_set(&inside_wanted, 1);
	inside = (struct kprobe) {
		.symbol_name = inside_symbol,
		.pre_handler = go_inside,
		.post_handler = after_function,
	};
	err = register_kprobe(&inside);
	if (err)
		inside = (struct kprobe) { 0 };
	return err;
}

/* --- a race, for who looks for them --- */

static unsigned long raced;

static noinline int race_on_purpose(void *rounds)
{
	unsigned long i;

	for (i = 0; i < (unsigned long)rounds; i++) {
		raced++;
		/* Each time in memory. */
		barrier();
		cond_resched();
	}
	return 0;
}

static int run_race(struct holder *holder, const char *text)
{
	struct task_struct *other;
	unsigned long rounds;

	if (kstrtoul(text, 0, &rounds))
		return -EINVAL;
	other = kthread_create(race_on_purpose, (void *)rounds, "umacct_race");
	if (IS_ERR(other))
		return PTR_ERR(other);
	get_task_struct(other);
	wake_up_process(other);
	race_on_purpose((void *)rounds);
	kthread_stop(other);
	put_task_struct(other);
	set_result(holder, "status=0x0\n");
	return 0;
}

static int run_command(struct holder *holder, const char *command)
{
	struct shape shape;
	bool bench, crowd, retry, keep;

	if (str_has_prefix(command, "fail "))
		return run_fail(holder, command + strlen("fail "));
	if (str_has_prefix(command, "race "))
		return run_race(holder, command + strlen("race "));
	if (str_has_prefix(command, "memory")) {
		run_memory(holder);
		return 0;
	}
	if (str_has_prefix(command, "hide ")) {
		set_result(holder, "status=0x0\n");
		return run_hide(command + strlen("hide "));
	}
	if (str_has_prefix(command, "hold ")) {
		set_result(holder, "status=0x0\n");
		return run_hold(command + strlen("hold "));
	}
	if (str_has_prefix(command, "release")) {
		set_result(holder, "status=0x0\n");
		run_release();
		return 0;
	}
	if (str_has_prefix(command, "inside ")) {
		set_result(holder, "status=0x0\n");
		return run_inside(holder, command + strlen("inside "));
	}
	if (str_has_prefix(command, "fault "))
		return run_fault(holder, command + strlen("fault "));
	if (str_has_prefix(command, "outside")) {
		run_outside();
		set_result(holder, "status=0x%x\n", inside_status);
		return 0;
	}
	if (str_has_prefix(command, "direct ")) {
		set_result(holder, "status=0x0\n");
		return run_direct(command + strlen("direct "));
	}
	if (str_has_prefix(command, "undirect")) {
		set_result(holder, "status=0x0\n");
		run_undirect();
		return 0;
	}
	if (str_has_prefix(command, "native ")) {
		set_result(holder, "status=0x0\n");
		return run_native(command[strlen("native ")] == '1');
	}
	if (str_has_prefix(command, "unhide")) {
		set_result(holder, "status=0x0\n");
		run_unhide();
		return 0;
	}
	if (str_has_prefix(command, "free")) {
		free_blocks(holder);
		set_result(holder, "status=0x0\n");
		return 0;
	}
	if (str_has_prefix(command, "heap "))
		return run_heap(holder, command + strlen("heap "));
	if (str_has_prefix(command, "register "))
		return run_register(holder, command + strlen("register "));
	if (str_has_prefix(command, "managed "))
		return run_managed(holder, command + strlen("managed "));
	bench = str_has_prefix(command, "bench ");
	crowd = str_has_prefix(command, "crowd ");
	retry = str_has_prefix(command, "retry ");
	keep = str_has_prefix(command, "keep ");
	if (!bench && !crowd && !retry && !keep && !str_has_prefix(command, "alloc "))
		return -EINVAL;
	if (parse_shape(strchr(command, ' ') + 1, &shape) ||
	    (!retry && !driver_can_walk(holder, &shape)))
		return -EINVAL;
	if (keep)
		return run_keep(holder, &shape);
	if (bench || crowd)
		return run_bench(holder, &shape, crowd);
	return retry ? run_retry(holder, &shape) : run_alloc(holder, &shape);
}

struct thread_command {
	struct holder *holder;
	const char *command;
	int result;
	struct completion done;
};

static int thread_main(void *data)
{
	struct thread_command *thread = data;

	thread->result = run_command(thread->holder, thread->command);
	kthread_complete_and_exit(&thread->done, 0);
}

static int run_in_thread(struct holder *holder, const char *command)
{
	struct thread_command thread = { .holder = holder, .command = command };
	struct task_struct *task;

	init_completion(&thread.done);
	task = kthread_run(thread_main, &thread, "umacct_test");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wait_for_completion(&thread.done);
	return thread.result;
}

static ssize_t holder_write(struct file *file, const char __user *buffer, size_t length,
			    loff_t *pos)
{
	struct holder *holder = file->private_data;
	char command[128];
	int err;

	if (length >= sizeof(command))
		return -EINVAL;
	if (copy_from_user(command, buffer, length))
		return -EFAULT;
	command[length] = '\0';
	strim(command);

	mutex_lock(&holder->lock);
	if (str_has_prefix(command, "thread "))
		err = run_in_thread(holder, command + strlen("thread "));
	else
		err = run_command(holder, command);
	mutex_unlock(&holder->lock);
	return err ?: length;
}

/* The result of the newest command, once. */
static ssize_t holder_read(struct file *file, char __user *buffer, size_t length, loff_t *pos)
{
	struct holder *holder = file->private_data;
	loff_t start = 0;
	ssize_t ret;

	mutex_lock(&holder->lock);
	ret = simple_read_from_buffer(buffer, length, &start, holder->result,
				      holder->result_length);
	if (ret > 0) {
		holder->result_length -= ret;
		memmove(holder->result, holder->result + ret, holder->result_length);
	}
	mutex_unlock(&holder->lock);
	return ret;
}

static int holder_open(struct inode *inode, struct file *file)
{
	struct holder *holder = kzalloc(sizeof(*holder), GFP_KERNEL);
	int err = -ENODEV;

	if (!holder)
		return -ENOMEM;
	mutex_init(&holder->lock);
	INIT_LIST_HEAD(&holder->blocks);

	holder->alloc = (void *)find_symbol("nvidia:nv_alloc_pages");
	holder->free = (free_fn)find_symbol("nvidia:nv_free_pages");
	holder->driver = get_module_of((unsigned long)holder->alloc);
	if (!holder->driver)
		goto err_free;
	holder->driver_version = read_driver_version();
	if (!holder->driver_version || !holder->free)
		goto err_put;
	file->private_data = holder;
	return 0;

err_put:
	module_put(holder->driver);
err_free:
	kfree(holder);
	return err;
}

static int holder_release(struct inode *inode, struct file *file)
{
	struct holder *holder = file->private_data;

	free_blocks(holder);
	if (inside_holder == holder)
		run_outside();
	module_put(holder->driver);
	kfree(holder);
	return 0;
}

static const struct file_operations holder_fops = {
	.owner = THIS_MODULE,
	.open = holder_open,
	.release = holder_release,
	.read = holder_read,
	.write = holder_write,
};

static struct miscdevice holder_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "umacct_test_alloc",
	.mode = 0666,
	.fops = &holder_fops,
};

static int __init test_alloc_init(void)
{
	return init_find_symbol() ?: misc_register(&holder_device);
}

static void __exit test_alloc_exit(void)
{
	misc_deregister(&holder_device);
	run_release();
	run_unhide();
	run_undirect();
	run_native(false);
	end_failures();
}

module_init(test_alloc_init);
module_exit(test_alloc_exit);
MODULE_DESCRIPTION("umacct selftests: calls the NVIDIA driver's page allocator");
MODULE_LICENSE("GPL");
