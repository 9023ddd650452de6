/** Times that a file's beginning meets something that is gone when it looks; then its caller is told to come back. */
export const maxBeginTries = 16;
/** Jobs that use one file: bounds its document to some 800 KB; whoever comes next is told to come back. */
export const maxPinsPerFile = 10_000;
/** Hint of that refusal, in ms: jobs end within minutes. */
export const fullPinsRetryMs = 5_000;

/** Operations in one compare-and-set of an account's quota: what a lost race folds again. */
export const maxQuotaOperations = 64;
/** Charges that a quota's document carries until they are copied: with those of one transition some 15 KB. */
export const tailCopiedAt = 64;
/** Times that a transition of a quota may be overtaken before its callers are told to come back. */
export const maxConflicts = 64;
/** Pause after having been overtaken, in ms: up to this, times how often. */
export const conflictPauseMs = 2;
