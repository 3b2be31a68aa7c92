/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_NV_STATUS_H
#define UMACCT_NV_STATUS_H

/* What the drivers' functions return: NV_STATUS. */
#define NV_OK			0x00
#define NV_ERR_NO_MEMORY	0x51

#endif /* UMACCT_NV_STATUS_H */
