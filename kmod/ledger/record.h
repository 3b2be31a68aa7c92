/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_RECORD_H
#define UMACCT_RECORD_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "ledger/client.h"
#include "ledger/limit.h"

/* How many spare records there are to be, and may be. */
#define RECORD_SPARES_LOW	16
#define RECORD_SPARES_HIGH	64
#define RECORD_SPARES_MAX	128

/* Guarded by umacct_ledger_lock. */
extern u32 umacct_record_spares;

int umacct_record_init(void);
void umacct_record_exit(void);
void umacct_record_fill_spares(void);
void umacct_record_trim_spares(void);
bool umacct_record_set_aside_locked(struct allocation *alloc);
void umacct_record_give_back_locked(struct allocation *alloc);
void umacct_record_end(struct allocation *alloc, bool success, unsigned long key, bool charged);
void umacct_record_erase(unsigned long key);
struct record *umacct_record_take(unsigned long key);
void umacct_record_put_back(struct record *record);
void umacct_record_settle(struct record *record);
u64 umacct_record_drop(bool uvm);

/* Has some spare records. May sleep; not under umacct_ledger_lock. */
static inline void record_refill(void)
{
	if (unlikely(READ_ONCE(umacct_record_spares) < RECORD_SPARES_LOW))
		umacct_record_fill_spares();
}

/*
 * Has not too many spare records; each free calls it. Not under umacct_ledger_lock, nor in
 * interrupts.
 */
static inline void record_trim(void)
{
	if (unlikely(READ_ONCE(umacct_record_spares) > RECORD_SPARES_MAX))
		umacct_record_trim_spares();
}

/* --- managed memory ------------------------------------------------------- */

/*
 * Managed memory: a record for each of nvidia-uvm's chunks.
 */

struct chunk;
struct pid;
struct shortage;

/* Chunk that can't be recorded for lack of memory; see umacct_chunk_begin(). */
#define CHUNK_UNTRACKED		((struct chunk *)1)

struct chunk *umacct_chunk_begin(u64 bytes, bool charges, bool bulk, struct shortage *why);
struct chunk *umacct_chunk_begin_in_thread(u64 bytes, struct pid *process);
bool umacct_chunk_may_fault(struct pid *process, struct shortage *why);
u64 umacct_chunk_account_id(const struct chunk *chunk);
u64 umacct_chunk_penalty(const struct chunk *chunk, u64 *account_id);
void umacct_chunk_end(struct chunk *chunk, u64 bytes, bool success, unsigned long key);
struct chunk *umacct_chunk_take(unsigned long key);
void umacct_chunk_settle(struct chunk *chunk);
u64 umacct_chunk_drop(void);
u32 umacct_chunk_count(void);
int umacct_chunk_init(void);
void umacct_chunk_exit(void);

#endif /* UMACCT_RECORD_H */
