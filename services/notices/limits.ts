// The times and bounds of notices: how often processes look, and how often messages go to an operator.

/** Ms between two looks of a process at its own metrics, and at what is to be told. */
export const lookMs = 10_000;
/** Ms after which a process writes again that a notice lasts. More often would only load the store. */
export const seenAgainMs = 30_000;
/** Ms after which a notice that no process has written again is over. A restart takes less, and then nothing is told. */
export const overAfterMs = 5 * 60_000;
/** Most notices that one look writes. A catalog with more broken upstreams needs no longer list. */
export const maxSeen = 100;
/** Most notices that are read at once, of all processes. */
export const maxListed = 500;
/** Ms after which a notice that is over is forgotten. Each way has its own record of what it has told. */
export const forgottenAfterMs = 24 * 3_600_000;

/** Most notices in one message. What is left comes in the next one. */
export const maxToldAtOnce = 20;
/** Least ms between two messages of one way. What begins in that time is one message. */
export const betweenMessagesMs = 15_000;
/** Ms after which a notice that lasts is told again. */
export const toldAgainMs = 24 * 3_600_000;
/** Ms for one attempt: look-up of the name, connection and answer. */
export const attemptMs = 20_000;
/** Ms after which an attempt without an end counts as lost with its process: three times the time that an attempt may take. */
export const attemptLeaseMs = 60_000;
/** Pauses after the first, second and later failed attempts, in ms. The last pause repeats. */
export const pausesMs: readonly number[] = [5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000];
/** Bytes of a receiver's answer that are read and dropped. Only the status counts. */
export const maxAnswerBytes = 16 * 1024;
/** Characters of a mail server's answer that an operator is shown. */
export const maxAnswerChars = 300;
