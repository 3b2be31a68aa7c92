// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A SPANK plugin: when the last of a step's tasks on this node ends, the job's peak goes into Slurm's
 * record of it. That is before the job is over: afterwards Slurm refuses every change of the record, an
 * Epilog's, too. A failure here is not the job's to suffer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <slurm/spank.h>

SPANK_PLUGIN(umacct, 1);

static uint32_t ended;

int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
	const char *program = argc ? argv[0] : "/usr/share/umacct/slurm/peak";
	uint32_t job, tasks;
	char command[256];

	if (spank_get_item(spank, S_JOB_ID, &job) ||
	    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) || ++ended < tasks)
		return 0;
	/* The step ends after this, also while slurmctld does not answer. */
	snprintf(command, sizeof(command), "timeout -k 2 10 %s %" PRIu32, program, job);
	if (system(command))
		slurm_error("umacct: cannot write down the peak of job %" PRIu32 ": %s failed", job,
			    program);
	return 0;
}
