/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_METADATA_H
#define UMACCT_METADATA_H

#include "hooks/hook.h"

struct allocation;

extern struct hook umacct_hook_os_alloc_mem;
extern struct hook umacct_hook_os_free_mem;
extern struct hook umacct_hook_device_open;
extern struct hook umacct_hook_device_close;
extern struct hook umacct_hook_client_construct;
extern struct hook umacct_hook_client_destruct;
extern struct hook umacct_hook_event_construct;
extern struct hook umacct_hook_event_destruct;
extern struct hook umacct_hook_event_api_construct;
extern struct hook umacct_hook_event_api_destruct;
extern struct hook umacct_hook_copy_construct;
extern struct hook umacct_hook_copy_destruct;
extern struct hook umacct_hook_lock_user_pages;
extern struct hook umacct_hook_unlock_user_pages;
extern struct hook umacct_hook_look_up_user_io;
extern struct hook umacct_hook_uvm_device_open;
extern struct hook umacct_hook_uvm_device_close;
extern struct hook umacct_hook_kvmalloc;
extern struct hook umacct_hook_kvmalloc_zero;
extern struct hook umacct_hook_kvrealloc;
extern struct hook umacct_hook_kvfree;
extern struct hook umacct_hook_range_create_external;
extern struct hook umacct_hook_range_create_pool;
extern struct hook umacct_hook_range_create_mmap;
extern struct hook umacct_hook_range_split;
extern struct hook umacct_hook_range_destroy;
extern struct hook umacct_hook_block_create;
extern struct hook umacct_hook_block_destroy;

bool umacct_metadata_begin(struct allocation *alloc, enum hook_module module, u64 bytes);

/*
 * Objects of a known size are recorded under an address of their own: what they lie in may be
 * recorded by its size.
 */
static inline unsigned long metadata_object(const void *object)
{
	return (unsigned long)object + 1;
}

void umacct_metadata_init(void);

#endif /* UMACCT_METADATA_H */
