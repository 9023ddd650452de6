// Bounds of operators who sign in by name, each with its reason.

/** The form of a name, which may be an e-mail address. The audit log shows it. */
export const operatorNamePattern = /^[a-z0-9][a-z0-9._@+-]{0,63}$/;
/** Operators of an installation: more than any team has. One answer lists them all. */
export const maxOperators = 200;
/** Characters of a password. NIST SP 800-63B asks for 8 beside a second factor; a few more cost people little. */
export const passwordChars = { least: 12, most: 200 } as const;
/**
 * Parameters of scrypt for new passwords: those that OWASP recommends. One hash takes 128 MiB and some tenths of a second of a core.
 */
export const scryptCosts = { cost: 2 ** 17, blockSize: 8, parallelization: 1 } as const;
/** Hashes at once, so that sign-ins take 256 MiB at most, and half of the threads that file access and DNS share. */
export const maxHashesAtOnce = 2;
/** Hashes that wait for each address. Further ones are refused, so that one address delays the others by seconds at most. */
export const maxHashesWaiting = 4;
/** Milliseconds that a hash waits for its turn: below the deadline of the gateway's call. */
export const hashWaitMs = 5_000;
/** Steps of 30 s by which an authenticator's clock may differ, before and after. RFC 6238 recommends one. */
export const codesWithin = 1;
/**
 * Wrong codes with the right password within {@link wrongCodesMs}. Someone who knows the password then guesses a code with a chance of
 * one in 30,000 a day. Nobody else can make an operator wait in this way.
 */
export const maxWrongCodes = 10;
/** Milliseconds for which wrong codes count: a day. */
export const wrongCodesMs = 86_400_000;
/** Recovery codes of an operator: years of lost phones. */
export const recoveryCodeCount = 10;
/** Milliseconds for which a link to set up an operator is valid: a day. */
export const setUpMs = 86_400_000;
/** Random characters of a link's token: 238 bits. */
export const setUpTokenChars = 40;
/** Addresses of an operator's last sign-ins that are kept: an office, a home, a phone. */
export const maxKnownClients = 5;
/**
 * Failed tries of one name within a minute, from addresses that it has not signed in from. With scrypt it bounds the guessing of a
 * password by many addresses, and such strangers do not hold up the operator at a usual address.
 */
export const maxFailedSignInsOfName = 30;
