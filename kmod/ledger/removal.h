/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_REMOVAL_H
#define UMACCT_REMOVAL_H

struct work_struct;

int umacct_removal_init(void);
void umacct_removal_refresh(void);
void umacct_removal_follow(struct work_struct *work);
void umacct_removal_exit(void);

#endif /* UMACCT_REMOVAL_H */
