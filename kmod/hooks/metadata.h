/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_METADATA_H
#define UMACCT_METADATA_H

#include "hooks/hook.h"

struct allocation;

extern struct hook hook_os_alloc_mem;
extern struct hook hook_os_free_mem;
extern struct hook hook_client_construct;
extern struct hook hook_client_destruct;
extern struct hook hook_kvmalloc;
extern struct hook hook_kvmalloc_zero;
extern struct hook hook_kvrealloc;
extern struct hook hook_kvfree;
extern struct hook hook_range_create_external;
extern struct hook hook_range_create_mmap;
extern struct hook hook_range_destroy;
extern struct hook hook_block_create;
extern struct hook hook_block_destroy;

bool metadata_begin(struct allocation *alloc, enum hook_module module, u64 bytes);

/*
 * Objects of a known size are recorded under an address of their own: what they lie in may be
 * recorded by its size.
 */
static inline unsigned long metadata_object(const void *object)
{
	return (unsigned long)object + 1;
}

void metadata_init(void);

#endif /* UMACCT_METADATA_H */
