/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of the drivers' own heaps is counted by size, and what in lots. The kernel module and the
 * observer's BPF programs (userspace/bpf/) both have it from here.
 */
#ifndef UMACCT_BOUNDS_H
#define UMACCT_BOUNDS_H

/* Above this, nvidia.ko takes whole pages from vmalloc(). */
#define OS_MEM_BOUND		(128 * 1024)

/* The same of nvidia-uvm's, in pages. */
#define KVMALLOC_BOUND_PAGES	4

/*
 * The array of a range of managed memory, of a pointer for each 2 MiB: a range is counted as if it
 * had one of this size, and a larger one besides. Less is not looked at.
 */
#define ARRAY_BOUND		512

/* What either driver puts in front of memory from vmalloc(), at most. */
#define HEADER_BYTES		16

/* Groups of ranges, and ranges in them, in the first lot, and how many lots there can be. */
#define GROUPS_IN_LOT		64
#define GROUP_LOTS		32

/* Ranges that one assignment can add: the new one, and the rest of a range that it splits. */
#define RANGES_ASSIGNED		2

/* How many groups so many lots have room for. */
static inline unsigned long long groups_in(unsigned int lots)
{
	return lots ? (unsigned long long)GROUPS_IN_LOT << (lots - 1) : 0;
}

/*
 * The array of a program's own memory that it registers, with an entry for each page. A large one
 * is counted where it is allocated.
 */
static inline unsigned long long user_pages_bytes(unsigned long long pages)
{
	return pages <= OS_MEM_BOUND / sizeof(void *) ? pages * sizeof(void *) : 0;
}

#endif /* UMACCT_BOUNDS_H */
