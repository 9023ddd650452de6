// The bounds and intervals of all of billing, each with its unit and reason.

import type { Unit } from "../ledger/wallet.ts";

/** Open holds of a wallet. This bounds its document (docs/money.md). A caller beyond it is asked to try again. */
export const maxOpenHolds = 1_000;
/**
 * Hint for when to try again in that refusal, in ms. By then some of a thousand have ended: text and speech take seconds, jobs minutes.
 * Clients follow a hint of up to a minute. They replace a longer one by their own, which is shorter.
 */
export const openHoldsRetryMs: Readonly<Record<Unit, number>> = {
  usd_micros: 5_000,
  credits: 60_000,
};

/** A single grant, in the wallet's unit: nine billion dollars in micros, so that a typing error cannot exceed int64. */
export const maxGrantAmount = 9n * 10n ** 15n;
/** All grants of a wallet together: below int64's 9.22 * 10^18, so that no sum of a wallet overflows. */
export const maxGranted = 9n * 10n ** 18n;
/** Largest int64, the type on the wire and in the stores. */
export const maxAmount = 2n ** 63n - 1n;

/**
 * How far a clock may be behind a wallet's last entry, in ms. Up to that, a new entry gets the last one's time. Replicas differ by less
 * than a second, and NTP sets a clock back by less than this. A clock that was set back further had been wrong.
 */
export const maxClockLagMs = 5 * 60_000;

/** Hold ids become field names in a document store. */
export const holdIdPattern = /^[a-z0-9_]{8,40}$/;
/**
 * How often one grant may be taken back. A part each time that requests end is plenty, and an operation looks up as many entries as this.
 */
export const maxTakeBacks = 20;
/** Operation ids of grants. The operator's tools choose them. */
export const grantIdPattern = /^[A-Za-z0-9_.:-]{1,128}$/;
/** References by which people look a hold up. They are printable, so that every store returns them unchanged. */
export const refPattern = /^[^\p{Cc}\p{Cs}]{0,100}$/u;
/**
 * Characters of an entry's record of its request: its names at their longest, twenty numbers, three codes of up to 64, and
 * calls of eight kinds of tools. Eight failed tries of up to 150 stand beside them.
 */
export const maxRecordLength = 3_400;
/** Last check time, in ms since the epoch: the end of year 9999, the last of a protobuf timestamp. */
export const maxTimeMs = 253_402_300_799_999;

/** Highest number of an entry that is looked for: the largest that a JavaScript number holds exactly. */
export const maxEntryNumber = BigInt(Number.MAX_SAFE_INTEGER);

/** Operations in one Apply. This bounds the message and the time for which a commit blocks the event loop. */
export const maxApplyOperations = 256;
/** Operations of one wallet in one transition. One Apply fits. */
export const maxBatchOperations = 256;
/** Operations of one wallet that wait for their turn. Beyond it the store is too slow, and waiting only delays. */
export const maxWaitingOperations = 8_192;

/** Rows of a page of holds or entries. */
export const maxPageSize = 1_000;
/** Rows where the caller names no number. */
export const defaultPageSize = 100;
/** Entries that an audit reads at once: a few ms of a synchronous store's time. */
export const auditPageSize = 1_000;

/** Entries that are read at once where a journal is added up by key: some ms of a synchronous store's time. */
export const usagePageSize = 500;

/** Keys of an account whose week is read at once, at most 168 hours each for every model: some ms of a synchronous store's time. */
export const keysGroupedAtOnce = 50;

/** Time between two searches for holds whose check time has passed, in ms. */
export const sweepIntervalMs = 1_000;
/** Time between two searches for the oldest open hold, in ms. Metrics are read about as often. */
export const holdAgeIntervalMs = 15_000;
/** Due holds that are read in one search. The next search reads the rest. */
export const sweepPageSize = 256;
/** Owners' answers that are awaited at once, so that an owner that was away is not overloaded when it is back. */
export const sweepConcurrency = 16;
/** Milliseconds for an owner's answer, which takes one read. */
export const askTimeoutMs = 5_000;
/** First pause after an owner could not be asked, or failed on a hold, in ms. It doubles each time. */
export const askBackoffMs = 1_000;
/** Longest pause, in ms. An owner that is back is noticed within this time. */
export const maxAskBackoffMs = 60_000;
/** Holds with a pause. Beyond it the oldest is forgotten, and so asked about sooner. */
export const maxPausedHolds = 10_000;
/** Least time by which a check time moves, in ms. So an owner that answers "until now" is not asked all the time. */
export const minKeepMs = 1_000;

/** Operations in one compare-and-set of a wallet document (docs/money.md). All of them are folded again after a lost race. */
export const maxTransitionOperations = 64;
/** Entries that a wallet document carries (docs/money.md): about 75 KB of it. */
export const maxTail = 256;
/** Entries at which a tail is copied to the journal. That is few documents for one copy, and leaves room for three more transitions. */
export const tailFlushedAt = 64;
/** Newest entries at which SQLite moves them to the journal. A move of this many takes 4 ms of the event loop. Smaller moves cost more for each entry. */
export const newestMovedAt = 512;
/** Wallets that are remembered between two transitions. Each has at most 300 KB (a thousand holds), usually a few KB. */
export const maxImages = 1_000;
/** Keys whose counters a remembered wallet carries between two commits. An account can make any number of keys. */
export const maxImageKeys = 1_000;
/** Transitions of a wallet that read it again after another process was seen to work on it. */
export const waryTransitions = 8;
/** How often a transition may lose to others before its callers are asked to try again. */
export const maxConflicts = 64;
/** Longest pause after losing to another one, in ms. It is multiplied by the number of losses. */
export const conflictPauseMs = 2;
/** Wallet documents that are read at once where lists are made of them. */
export const walletBatchSize = 64;

/** Entries that were made while a key's journal was added up, and that its transition reads: some ms of a synchronous store's time. */
export const maxEntriesSince = 500;
/** How often reading a key's journal goes on because its wallet was written to meanwhile. */
export const maxTotalsRounds = 64;
/** How long an operation waits for a key's journal to be added up, in ms. Its caller waits longer before it asks again. */
export const addingWaitMs = 1_500;
/** Keys whose journals are being added up, or were recently. */
export const maxAddings = 1_000;

/** Entries that are counted at once: some ms of a synchronous store's time, and one command of a document store each. */
export const countedAtOnce = 250;
/** How often rows of the rollup are tried where other processes count the same entries. Each time one of them succeeded. */
export const maxSlotRounds = 64;
/** Milliseconds for which a call counts entries of its account's journals that are not counted yet. Its caller waits. */
export const countingMs = 1_000;
/** Hint for when to try again in the refusal after that, in ms. A million entries take about a minute. */
export const countingRetryMs = 2_000;
/** Milliseconds between two searches for wallets that were written to. A read meanwhile counts by itself. */
export const countIntervalMs = 1_000;
/** Milliseconds between two searches for wallets that were not noted here, because a replica that ended wrote to them last. */
export const behindIntervalMs = 10 * 60_000;
/** Wallets that are checked at once for journals that are not counted. */
export const looksBehind = 500;
/** Lines that are searched for one page: some 50 ms, in pieces. A page with a rare filter may end there. */
export const maxLookedThrough = 4_000;
/** Lines that are read in one such piece: 3 ms of a synchronous store's time. */
export const linesReadOn = 250;
/** Rows of the rollup that an audit reads at once. */
export const usageRowsPage = 1_000;
/** Buckets of an answer: a week of hours. */
export const maxBuckets = 168;
/** Seconds of the rollup that are grouped at once: a week. This bounds a synchronous store's time. */
export const maxGroupedSeconds = 7 * 86_400;
/** Days of margins: a quarter. SQLite reads all accounts' hours of them one by one, in about a second. */
export const maxMarginDays = 92;
/** Results after which no further bucket is added to an answer: about 3 MB of JSON. */
export const maxUsageResults = 10_000;
/** Models in a filter. Each is a parameter of the store's query. A caller with more asks for all, and groups by model. */
export const maxUsageModels = 100;
/** The newest lines with the same id that are searched for one of the key. */
export const maxSameIds = 100;
/** Characters of a value by which a line is looked up: a model, an id or an `x-request-id`. All of them are shorter. */
export const maxLookUpLength = 200;

/** Largest balance that an alert can name, in USD micros: nine billion dollars, exact as a number of JSON. */
export const maxLowBalance = 9_000_000_000_000_000n;
/** Alerts of limits that are known to be written down, about 100 bytes each. An alert beyond it is written again, without effect. */
export const maxToldAlerts = 10_000;
/** Alerts of an account that are kept. In that time a thousand keys can reach a limit of each period. They take some 2 MB. */
export const maxAlertsKept = 5_000;
/** Alerts that are written at once. */
export const alertsAddedAtOnce = 20;
/** Accounts whose alerts are handed over for delivery at once. The next call takes the next accounts. */
export const alertAccountsAtOnce = 20;
/** Alerts of one account that are handed over at once. They are delivered one after the other. */
export const alertsOfAccountAtOnce = 5;
/** Milliseconds between two searches for alerts that may be deleted. */
export const forgetAlertsMs = 60_000;
/** Alerts that are deleted at once. */
export const alertsForgottenAtOnce = 1_000;

/** Milliseconds between two searches for monthly grants that are due: one small read by an index. So a month's grant comes in this time. */
export const grantLookMs = 10_000;
/** Monthly grants that are given at once, each with up to two writes of the ledger. All accounts wait for the first of a month. */
export const grantsAtOnce = 20;
