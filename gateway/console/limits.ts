// Bounds of the console, each with its reason.

/** Body of a sign-in: a secret of 256 characters and its JSON. */
export const signInBodyBytes = 4 * 1024;
/**
 * Milliseconds for the body of a sign-in. Browsers send it with its head. While it is awaited, it holds room that others of the same
 * address need.
 */
export const signInBodyMs = 5_000;
/** Random bytes of a session's id: the 256 bits of the API's contract. */
export const sessionIdBytes = 32;
/** Look-ups of sessions under way at once. Each takes a millisecond, so only a flood of invented cookies exceeds this. */
export const maxSessionLookUps = 1_024;
/** Deadline of a look-up of a session, in ms, like that of a key. */
export const lookUpTimeoutMs = 2_000;
/** After a sign-in where the identity provider asked for the password, no secret is asked for again for this many ms. */
export const confirmedMs = 5 * 60_000;
/** A sign-in at an identity provider is over after this many seconds. By then a person has found a password and a second factor. */
export const oidcSignInSeconds = 10 * 60;
/** Milliseconds for one call of an identity provider. */
export const oidcTimeoutMs = 10_000;
/** An identity provider's keys and addresses are loaded again after this many ms. It changes keys over days. */
export const oidcConfigMs = 3_600_000;

/** Milliseconds that building the app may take. On two busy cores it takes a few seconds. */
export const buildTimeoutMs = 120_000;
/** Built apps in the cache: a few states of the sources, between which a developer switches. */
export const keptBuilds = 5;
/** Bytes of a failed build's output that are kept: its first screens. */
export const buildOutputBytes = 16 * 1024;
