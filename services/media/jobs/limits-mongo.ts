/** Waiting jobs read at one look, by index alone: a lane of more is left behind with the next look. */
export const claimPage = 100;
/** Searches of one claim; each but the last found a job, or a place, that somebody else took meanwhile. */
export const maxClaimRounds = 64;
/** Turns of one transition; each but the last met a change made by another process meanwhile. */
export const maxTransitionRounds = 64;
/** Turns of an insert whose slot is taken, and then free again: each is another's refusal. */
export const maxInsertRounds = 8;
/**
 * Changes of a job that it remembers by name. Whoever had no answer asks within 10 s whether it was he; in that time a job
 * changes twenty times at most: its progress each second, its lease, its steps.
 */
export const changesKept = 32;
/** Looks of one sweep at the due jobs of a state; each but the last met another sweeper. What is left, the next one finds. */
export const maxTakeRounds = 16;
