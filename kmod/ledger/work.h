/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_WORK_H
#define UMACCT_WORK_H

#include <linux/workqueue.h>

/* What the ledger and the hooks do later, in a queue of its own: no other work waits for it. */
extern struct workqueue_struct *umacct_ledger_work;

#endif /* UMACCT_WORK_H */
