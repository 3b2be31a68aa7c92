/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command loop of the test programs. A program is driven by its arguments
 * (each one a whole command), by lines on stdin, or by lines on a pair of FIFOs
 * (-f PREFIX: PREFIX.in and PREFIX.out), and answers each command with one line:
 *
 *	ok NAME [KEY=VALUE]...
 *	refused NAME status=0x51 [KEY=VALUE]...		the driver's own status
 *	error NAME errno=22 [KEY=VALUE]...
 *
 * so that a shell script can say what happens next and knows when it has.
 */
#ifndef SELFTESTS_SCRIPT_H
#define SELFTESTS_SCRIPT_H

#include <stdint.h>

struct script_command {
	const char *name;
	const char *arguments;		/* line of the usage text */
	int min_args;
	/* 0, a driver's status (positive) or a negative errno. */
	int (*run)(int argc, char **argv);
};

/* The end of every answer, from script_note(). */
typedef void (*script_report_fn)(void);

/* The last element of @commands has no name. Returns the exit code. */
int script_run(int argc, char **argv, const struct script_command *commands,
	       script_report_fn report);

/* Adds " KEY=VALUE" to the answer of the command that is running. */
void script_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads commands from, and writes answers to, this pair of FIFOs from now on. */
int script_use_fifos(const char *prefix);

/* Reads "4096", "64K", "4M" or "1G". Returns 0 or -EINVAL. */
int script_parse_size(const char *text, uint64_t *size);

#endif
