/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_VIEW_H
#define UMACCT_VIEW_H

#include <linux/types.h>

bool view_possible(const char **why);
bool view_wanted(void);

#endif /* UMACCT_VIEW_H */
