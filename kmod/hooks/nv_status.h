/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_NV_STATUS_H
#define UMACCT_NV_STATUS_H

/* NV_STATUS, which the drivers' functions return. */
#define NV_OK			0x00
#define NV_ERR_NO_MEMORY	0x51

#endif /* UMACCT_NV_STATUS_H */
