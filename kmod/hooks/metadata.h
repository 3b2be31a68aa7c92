/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_METADATA_H
#define UMACCT_METADATA_H

#include "hooks/hook.h"
#include "hooks/nv_status.h"
#include "ledger/ledger.h"

void umacct_metadata_init(void);
bool umacct_metadata_begin(struct allocation *alloc, enum hook_module module, u64 bytes);

/*
 * Objects of a known size are recorded under an address of their own: what they lie in may be
 * recorded by its size.
 */
static inline unsigned long metadata_object(const void *object)
{
	return (unsigned long)object + 1;
}

/* The driver has answered, and made @object unless it failed. */
static inline void metadata_end(struct allocation *alloc, u32 status, const void *object)
{
	ledger_end(alloc, status == NV_OK, metadata_object(object), false);
}

#endif /* UMACCT_METADATA_H */
