// Runs the program of a Job of the chart, so that all of them report a failure in the same way.

/** Runs a Job's program. Exits with 1 and one line where it fails. */
export async function runJob(job: () => Promise<string>): Promise<void> {
  try {
    process.stdout.write(`${await job()}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
