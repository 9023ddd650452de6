/** Bounds of the console, each with its reason. */

/** Body of a sign-in: a secret of 256 characters and its JSON. */
export const signInBodyBytes = 4 * 1024;
/**
 * A sign-in's body is complete after this long: browsers send it with its head, and while it is awaited it holds room that others of the
 * same address need.
 */
export const signInBodyMs = 5_000;
/** Random bytes of a session's id (the contract's 256 bits). */
export const sessionIdBytes = 32;
/** Look-ups of sessions under way at once: each takes a millisecond, so above this it is a flood of made-up cookies. */
export const maxSessionLookUps = 1_024;
/** Deadline of a look-up of a session, as that of a key. */
export const lookUpTimeoutMs = 2_000;
/** After a sign-in at which the identity provider asked for the password, no secret is asked again for this long. */
export const confirmedMs = 5 * 60_000;
/** A sign-in at an identity provider is over after this long: a password and a second factor are found by then. */
export const oidcSignInSeconds = 10 * 60;
/** Milliseconds for one call of an identity provider. */
export const oidcTimeoutMs = 10_000;
/** An identity provider's keys and addresses are asked for anew after this long; it changes keys over days. */
export const oidcConfigMs = 3_600_000;

/** Milliseconds that building the app may take: on two busy cores a few seconds. */
export const buildTimeoutMs = 120_000;
/** Built apps kept in the cache: a few states of the sources, between which a developer goes to and fro. */
export const keptBuilds = 5;
/** Bytes of what a failed build says that are kept: its first screens. */
export const buildOutputBytes = 16 * 1024;
