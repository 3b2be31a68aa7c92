// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stands for the real library while ours is linked: it has the name under which the real one
 * lies beside ours, and nothing else.
 */
const char umacct_nvml_stub = 1;
