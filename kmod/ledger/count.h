/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UMACCT_COUNT_H
#define UMACCT_COUNT_H

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/types.h>

/*
 * Takes something off a count of what is there. Below zero it would read as nearly
 * everything: a mistake of ours must not lock a tenant out for ever.
 */
#define count_sub(count, by) do {					\
	typeof(count) __count = (count);				\
	typeof(*__count) __by = (by);					\
									\
	if (WARN_ONCE(*__count < __by, "umacct: %s is below zero\n", #count)) \
		__by = *__count;					\
	WRITE_ONCE(*__count, *__count - __by);				\
} while (0)

#endif /* UMACCT_COUNT_H */
