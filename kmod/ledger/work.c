// SPDX-License-Identifier: GPL-2.0-only
#include "ledger/work.h"

struct workqueue_struct *umacct_ledger_work;
