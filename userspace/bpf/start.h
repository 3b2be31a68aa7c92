/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads the BPF programs and attaches them, through libbpf: what libumacct-observer.so is for.
 * It is a library of its own, loaded when it is needed, as libbpf isn't otherwise. Readers of
 * maps that are pinned do without it.
 */
#ifndef UMACCT_OBSERVER_START_H
#define UMACCT_OBSERVER_START_H

#include <stddef.h>

/* The maps that readers want, as file descriptors of the observer. */
struct observer_maps {
	int accounts;
	int clients;
	int records;
	int totals;
	int hooks;
	int runs;
};

/*
 * Begins to count: what runs is pinned in a folder of bpffs, and goes on without its maker.
 * Of allocations that live at once, no more than records are tracked. The map "totals" is pinned
 * last: a folder without it is what was left of a start that was cut short, or of one under way.
 * No two callers may begin or end one at the same time.
 * Returns 0; or -1, and fills in why it can't; then nothing is pinned, but for what another one
 * has pinned there.
 */
int umacct_observer_begin(const char *folder, unsigned int records, char *why, size_t size);

struct observer;

/*
 * The same with nothing pinned: until umacct_observer_release(), or the end of the calling
 * process, whatever ends it. Returns NULL, and fills in why it can't; else fills in the maps.
 */
struct observer *umacct_observer_hold(unsigned int records, struct observer_maps *maps, char *why,
				      size_t size);

void umacct_observer_release(struct observer *observer);

/*
 * Ends what is pinned in a folder, and removes that if the caller may. Returns 0, or a negative
 * errno where some of it is left.
 */
int umacct_observer_end(const char *folder);

#endif /* UMACCT_OBSERVER_START_H */
