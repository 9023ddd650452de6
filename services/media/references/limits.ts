/** References fetched, decoded and stored at once in one process: each has up to 20 MiB in memory. */
export const importsAtOnce = 32;
/** Of one account: slow hosts that it names hold up its own jobs alone. */
export const importsAtOnceEach = 7;
/** References that wait for their turn; seven a job. */
export const maxWaitingImports = 2_048;
/** Attempts at one reference whose file is deleted, or given up, while the job takes hold of it. */
export const maxTurns = 5;
/** Purpose under which imports are listed. */
export const importPurpose = "reference";
