/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_DEBUGFS_H
#define UMACCT_DEBUGFS_H

void umacct_debugfs_init(void);
void umacct_debugfs_exit(void);

#endif /* UMACCT_DEBUGFS_H */
