/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Managed memory: a record for each of nvidia-uvm's chunks.
 */
#ifndef UMACCT_CHUNK_H
#define UMACCT_CHUNK_H

#include <linux/types.h>

struct chunk;

/* What can't be recorded, for want of memory; see umacct_chunk_begin(). */
#define CHUNK_UNTRACKED		((struct chunk *)1)

struct chunk *umacct_chunk_begin(u64 bytes, bool charges);
u64 umacct_chunk_account_id(const struct chunk *chunk);
u64 umacct_chunk_penalty(const struct chunk *chunk, u64 *account_id);
void umacct_chunk_end(struct chunk *chunk, u64 bytes, bool success, unsigned long key);
struct chunk *umacct_chunk_take(unsigned long key);
void umacct_chunk_settle(struct chunk *chunk);
u64 umacct_chunk_drop(void);
u32 umacct_chunk_count(void);
int umacct_chunk_init(void);
void umacct_chunk_exit(void);

#endif /* UMACCT_CHUNK_H */
