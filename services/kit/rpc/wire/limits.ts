// The bounds of internal calls, on both sides.

/** Largest message of an internal call, in bytes: a 64 MiB request body and its envelope. */
export const maxMessageBytes = 72 * 1024 * 1024;

/** Bytes of whole messages that wait for their reader before the sender is paused. */
export const readAheadBytes = 256 * 1024;

/** Bytes that a waiting message counts beyond its own, so that many small messages are bounded too. */
export const messageOverheadBytes = 128;

/** Bytes of ready messages that are written at once. More gains nothing. */
export const batchBytes = 64 * 1024;

/** Attempts of one call that reached a peer, the first included. */
export const maxAttempts = 3;

/** Addresses that may refuse a call's connection before the name is looked up again, and once more after that. */
export const maxUnreachable = 8;
