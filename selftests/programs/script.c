// SPDX-License-Identifier: GPL-2.0-or-later
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS	16

static FILE *input;
static FILE *output;
static char notes[512];

void script_note(const char *format, ...)
{
	size_t used = strlen(notes);
	va_list args;

	if (used + 1 >= sizeof(notes))
		return;
	notes[used++] = ' ';
	va_start(args, format);
	vsnprintf(notes + used, sizeof(notes) - used, format, args);
	va_end(args);
}

static FILE *open_fifo(const char *prefix, const char *suffix, const char *mode)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s.%s", prefix, suffix);
	/* Both ends stay open here, so that the script may come and go. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? NULL : fdopen(fd, mode);
}

int script_use_fifos(const char *prefix)
{
	FILE *in = open_fifo(prefix, "in", "r");
	FILE *out = open_fifo(prefix, "out", "w");

	if (!in || !out)
		return -errno;
	input = in;
	output = out;
	return 0;
}

int script_parse_size(const char *text, uint64_t *size)
{
	char *end;

	errno = 0;
	*size = strtoull(text, &end, 0);
	if (errno || end == text)
		return -EINVAL;
	switch (*end) {
	case 'G':
		*size <<= 10;
		/* fallthrough */
	case 'M':
		*size <<= 10;
		/* fallthrough */
	case 'K':
		*size <<= 10;
		end++;
	}
	return *end ? -EINVAL : 0;
}

static int cmd_exit(int argc, char **argv)
{
	_exit(argc > 1 ? strtol(argv[1], NULL, 0) : 0);
}

/* The commands that every program has. */
static const struct script_command shared[] = {
	{ "exit", "[CODE]", 0, cmd_exit },
	{ 0 }
};

static const struct script_command *find_command(const struct script_command *commands,
						 const char *name)
{
	for (; commands->name; commands++) {
		if (!strcmp(commands->name, name))
			return commands;
	}
	return NULL;
}

static void answer(const char *name, int result, script_report_fn report)
{
	report();
	if (!result)
		fprintf(output, "ok %s%s\n", name, notes);
	else if (result > 0)
		fprintf(output, "refused %s status=0x%x%s\n", name, result, notes);
	else
		fprintf(output, "error %s errno=%d%s\n", name, -result, notes);
	fflush(output);
}

static int run_line(char *line, const struct script_command *commands, script_report_fn report)
{
	const struct script_command *command;
	char *words[MAX_WORDS + 1];
	char *rest;
	int count = 0;
	int result;

	for (char *word = strtok_r(line, " \t\n", &rest); word && count < MAX_WORDS;
	     word = strtok_r(NULL, " \t\n", &rest))
		words[count++] = word;
	if (!count)
		return 0;
	words[count] = NULL;

	notes[0] = '\0';
	command = find_command(commands, words[0]);
	if (!command)
		command = find_command(shared, words[0]);
	if (!command)
		result = -ENOSYS;
	else if (count - 1 < command->min_args)
		result = -EINVAL;
	else
		result = command->run(count, words);
	answer(words[0], result, report);
	return result;
}

static void print_commands(const struct script_command *commands)
{
	for (; commands->name; commands++)
		fprintf(stderr, "  %s %s\n", commands->name, commands->arguments);
}

static int say_usage(const char *program, const struct script_command *commands)
{
	fprintf(stderr, "usage: %s [-f FIFOS | COMMAND...]   (each COMMAND one argument)\n",
		program);
	print_commands(commands);
	print_commands(shared);
	return 2;
}

int script_run(int argc, char **argv, const struct script_command *commands,
	       script_report_fn report)
{
	char line[1024];
	int failed = 0;

	input = stdin;
	output = stdout;

	if (argc > 1 && !strcmp(argv[1], "-f")) {
		if (argc != 3)
			return say_usage(argv[0], commands);
		if (script_use_fifos(argv[2])) {
			perror(argv[2]);
			return 1;
		}
	} else if (argc > 1 && argv[1][0] == '-') {
		return say_usage(argv[0], commands);
	} else if (argc > 1) {
		for (int i = 1; i < argc; i++)
			failed |= run_line(argv[i], commands, report) != 0;
		return failed;
	}

	while (fgets(line, sizeof(line), input))
		failed |= run_line(line, commands, report) != 0;
	return failed;
}
