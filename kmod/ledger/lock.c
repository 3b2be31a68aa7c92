// SPDX-License-Identifier: GPL-2.0-only
#include "ledger/lock.h"

DEFINE_RAW_SPINLOCK(umacct_ledger_lock);
