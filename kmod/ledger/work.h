/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_WORK_H
#define UMACCT_WORK_H

#include <linux/workqueue.h>

/* What the ledger does later; nobody else's work waits for it, nor it for theirs. */
extern struct workqueue_struct *ledger_work;

#endif /* UMACCT_WORK_H */
