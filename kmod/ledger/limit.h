/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_LIMIT_H
#define UMACCT_LIMIT_H

#include <linux/types.h>

#include <umacct.h>

#include "ledger/allocation.h"

/**
 * struct limit_change - what to change about an account
 * @mask: bits of enum limit_field: which of the others count
 * @soft: bytes or UMACCT_UNLIMITED
 * @hard: bytes or UMACCT_UNLIMITED
 * @throttle_ns: longest delay of one ioctl above @soft, 0 for none
 * @view: see UMACCT_A_ACCOUNT_VIEW
 * @charge: see enum umacct_charge_mode
 */
struct limit_change {
	unsigned int mask;
	u64 soft;
	u64 hard;
	u64 throttle_ns;
	bool view;
	enum umacct_charge_mode charge;
};

enum limit_field {
	LIMIT_SOFT	= 1 << 0,
	LIMIT_HARD	= 1 << 1,
	LIMIT_THROTTLE	= 1 << 2,
	LIMIT_VIEW	= 1 << 3,
	LIMIT_CHARGE	= 1 << 4,
};

/* What an administrator may ask for at most: a stalled task must stay a task. */
#define LIMIT_THROTTLE_MAX_NS	(2ULL * NSEC_PER_SEC)

bool limit_reserve_locked(struct allocation *alloc, u64 available);
void limit_unreserve_locked(struct allocation *alloc);
void limit_rose_locked(struct account *account, struct allocation *alloc);
void limit_fell_locked(struct account *account, u64 bytes);
void limit_decides_locked(void);
void limit_count_locked(const struct account *account, int by);
int limit_set(struct account *account, const struct limit_change *change, const char **why);
void limit_set_reserve(u64 bytes);

#endif /* UMACCT_LIMIT_H */
