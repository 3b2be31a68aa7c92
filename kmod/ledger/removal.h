/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_REMOVAL_H
#define UMACCT_REMOVAL_H

struct work_struct;

int removal_init(void);
void removal_refresh(void);
void removal_follow(struct work_struct *work);
void removal_exit(void);

#endif /* UMACCT_REMOVAL_H */
