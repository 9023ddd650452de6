// The bounds of the operator's routes, each with its reason.

/** Rows of a page, as many as an operator looks at. More would cost the services nothing, but the browser would have to show them. */
export const pageSizes = { most: 100, default: 25 } as const;
/** Operation ids of the console. They leave room for the prefix of an account's first funds. */
export const operationIdPattern = /^[A-Za-z0-9_.:-]{1,100}$/;
/** The largest amount of a grant, in the wallet's unit: nine billion dollars. A JSON number holds it exactly. */
export const maxAmount = 9_000_000_000_000_000;
/** Milliseconds for an audit of the whole ledger, which has some ten million entries. */
export const auditMs = 10 * 60_000;
/** Differences that an audit's answer names. More of them have one cause, and are only counted. */
export const maxDifferences = 1_000;
/** Bytes of a body with a draft of the catalog. A draft may have 1 MiB. Its line breaks and quotes take two bytes each in JSON. */
export const draftBodyBytes = 2 * 1024 * 1024 + 1024;
/** Pages of keys that one search by name reads. One answer stays within a second, and the operator goes on by "Next". */
export const keyPagesSearched = 20;
/** Pages of requests that one search reads until it finds some. Each looks through 4,000, so that one answer stays within a second. */
export const linePagesSearched = 5;
/** Characters of an operator's words about a version of the catalog. The catalog has the same bound. */
export const maxNoteChars = 200;
/** The greatest number of a version of the catalog, far above what operators make in a life. It is an integer of 32 bits. */
export const maxVersionNumber = 999_999_999;
/** Characters of a password as it is sent. Auth has the bounds of a new one. */
export const sentPasswordChars = { min: 1, max: 1_000 } as const;
/** Milliseconds for a call that hashes a password. On a busy machine a hash takes seconds, and waits for others. */
export const passwordTimeoutMs = 30_000;
