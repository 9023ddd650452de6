/** Rows of a page: as many as an operator looks at; more cost the services nothing but would have to be drawn. */
export const pageSizes = { most: 100, default: 25 } as const;
/** Operation ids of the console, with room for the prefix of an account's first funds. */
export const operationIdPattern = /^[A-Za-z0-9_.:-]{1,100}$/;
/** Largest amount of a grant, in the wallet's unit: nine billion dollars, exact as a number of JSON. */
export const maxAmount = 9_000_000_000_000_000;
/** Milliseconds for an audit of the whole ledger: some ten million entries. */
export const auditMs = 10 * 60_000;
/** Differences that an audit's answer names: more are one fault, and are counted. */
export const maxDifferences = 1_000;
/** Bytes of a body with a draft of the catalog: one of 1 MiB, whose line breaks and quotes take two in JSON. */
export const draftBodyBytes = 2 * 1024 * 1024 + 1024;
