/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The versions of the driver that are known. This is the only code that decides by them: a
 * new one is a row in the table. The kernel module and the observer's BPF programs
 * (userspace/bpf/) both have it from here.
 */
#ifndef UMACCT_DRIVER_VERSIONS_H
#define UMACCT_DRIVER_VERSIONS_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif

/* Layouts of hooked functions in a driver, one bit each. */
enum driver_layout {
	/* nv_alloc_pages(nv, count, contiguous, cache, zeroed, unencrypted, ptes, priv) */
	LAYOUT_ALLOC_8	= 1 << 0,
	/* ... with node before ptes */
	LAYOUT_ALLOC_9	= 1 << 1,
	/* ... and with page_size behind count */
	LAYOUT_ALLOC_10	= 1 << 2,
	/* uvm_cpu_chunk_alloc(size, flags, chunk) */
	LAYOUT_CHUNK_3	= 1 << 3,
	/* ... with node before chunk */
	LAYOUT_CHUNK_4	= 1 << 4,
	/* Has managed memory. */
	LAYOUT_UVM	= LAYOUT_CHUNK_3 | LAYOUT_CHUNK_4,
};

/**
 * struct driver_sizes - what a driver keeps of what, in bytes; 0 where it isn't known
 * @page: of each page of an allocation
 * @object: of an allocation, beside its pages
 * @file: of an open file of nvidia.ko's
 * @uvm_file: of one of nvidia-uvm's
 * @tools_file: of one of nvidia-uvm-tools', with a queue of up to 4 MiB, but for the array of its pages
 * @va_space: of the VA space of one, beside what it takes by size
 * @group: of a group of ranges, or of a range of addresses that is in one
 * @external: of a range of external memory
 * @pool: of a pool of semaphores, beside its pages
 * @managed: of a range of managed memory
 * @block: of 2 MiB of one in which something was touched
 *
 * What the slab allocator takes for it; see below for what was measured, and how.
 */
struct driver_sizes {
	unsigned int page;
	unsigned int object;
	unsigned int file;
	unsigned int uvm_file;
	unsigned int tools_file;
	unsigned int va_space;
	unsigned int group;
	unsigned int external;
	unsigned int pool;
	unsigned int managed;
	unsigned int block;
};

/*
 * Measured by selftests/run sizes: with 535.261 on x86_64, with 550.163 on x86_64 and arm64,
 * which differ by 3 % at most, and with 580.142 and 595.45 on x86_64, of which the greater counts;
 * 590 and later than 595 are taken to be like them. A page's is by the source: an entry of 32 bytes
 * and its address, from 580 on an entry of 16 bytes. Measured are 8 more up to 550: an array that is
 * counted by size. An object's, beside what the resource manager's heap has of it, is a block of 128
 * bytes. An open file's is more, by up to 12 %, for what the slab allocator loses between objects:
 * without what the kernel charges itself, it is 1,023 bytes with each of them, and takes up to 1,135 of
 * free memory where there are thousands. An open file's of nvidia-uvm is of 550, where 80,000 of these
 * files take 293 bytes each beside what the kernel charges; one of nvidia-uvm-tools takes at most
 * three pages for page tables and a block of 1 KiB besides; a group takes 65 bytes, a range that is in
 * one 97.
 */
#define SIZES_535							\
	{ .page = 40, .object = 128, .file = 1150, .uvm_file = 300, .tools_file = 13600, \
	  .va_space = 33000, .group = 98, .external = 1940, .pool = 10250, \
	  .managed = 2240, .block = 1130 }
#define SIZES_550							\
	{ .page = 40, .object = 128, .file = 1150, .uvm_file = 300, .tools_file = 13600, \
	  .va_space = 22600, .group = 98, .external = 16420, .pool = 24710, \
	  .managed = 24200, .block = 3220 }
#define SIZES_580							\
	{ .page = 16, .object = 128, .file = 1150, .uvm_file = 300, .tools_file = 13600, \
	  .va_space = 22600, .group = 98, .external = 16410, .pool = 10730, \
	  .managed = 800, .block = 3300 }

/**
 * struct series - releases that are alike
 * @first: number of the first one
 * @last: of the last one
 * @layouts: bits of enum driver_layout
 * @page_pools: it keeps freed pages
 * @sizes: what it keeps of what
 */
struct series {
	unsigned int first, last;
	unsigned int layouts;
	bool page_pools;
	struct driver_sizes sizes;
};

/*
 * Initialises an array of them. From source that was read: 515.105.01, 520.61.07, 525.147.05;
 * 530.41.03, 535.288.01; 545.29.06, 550.163.01, 555.58.02, 560.35.03, 565.77, 570.211.01, 575.64.05;
 * 580.142; 590.48.01; 595.45.04, 595.99.02, 610.57.04. A series that was not read, or as 615 only in
 * part, has no row: a wrong layout crashes the machine.
 */
#define KNOWN_SERIES {									\
	{ 515, 525, LAYOUT_ALLOC_8, false, SIZES_535 },			\
	{ 530, 535, LAYOUT_ALLOC_9 | LAYOUT_CHUNK_3, false, SIZES_535 },	\
	{ 545, 575, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, false, SIZES_550 },	\
	{ 580, 580, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, false, SIZES_580 },	\
	{ 590, 590, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, true, SIZES_580 },	\
	{ 595, 610, LAYOUT_ALLOC_10 | LAYOUT_CHUNK_4, true, SIZES_580 },	\
}

#endif /* UMACCT_DRIVER_VERSIONS_H */
