import type { Unit } from "../ledger/wallet.ts";

/** Open holds of a wallet: bounds its image (docs/money.md); a caller beyond it is told to come back. */
export const maxOpenHolds = 1_000;
/**
 * Hint of that refusal, in ms: after this some of a thousand have ended. Text and speech take seconds, jobs minutes. Clients
 * honour a hint of up to a minute; a longer one they replace by their own, which is shorter.
 */
export const openHoldsRetryMs: Readonly<Record<Unit, number>> = {
  usd_micros: 5_000,
  credits: 60_000,
};

/** A single grant, in the wallet's unit: nine billion dollars in micros, so that int64 is out of reach by a typing error. */
export const maxGrantAmount = 9n * 10n ** 15n;
/** All that a wallet may ever be granted: below int64's 9.22 * 10^18, so that no sum of a wallet overflows. */
export const maxGranted = 9n * 10n ** 18n;
/** Largest int64, which is what the wire and the stores carry. */
export const maxAmount = 2n ** 63n - 1n;

/**
 * How far a clock may be behind a wallet's last entry and still book at that entry's time, in ms. Replicas go by one clock to
 * a second, and NTP sets a clock back by less; a clock that was set back further had been wrong.
 */
export const maxClockLagMs = 5 * 60_000;

/** Hold ids become field names in a document store. */
export const holdIdPattern = /^[a-z0-9_]{8,40}$/;
/** Operation ids of grants, chosen by the operator's tools. */
export const grantIdPattern = /^[A-Za-z0-9_.:-]{1,128}$/;
/** What people look a hold up by: printable, so that every store gives back what it was given. */
export const refPattern = /^[^\p{Cc}\p{Cs}]{0,100}$/u;
/** Characters of what an entry keeps of its request: three short names and ten numbers. */
export const maxRecordLength = 1_000;
/** Last check time, ms since the epoch: the end of year 9999, the last that a timestamp can say. */
export const maxTimeMs = 253_402_300_799_999;

/** Highest number of an entry that is looked for: what a number of JavaScript holds exactly. */
export const maxEntryNumber = BigInt(Number.MAX_SAFE_INTEGER);

/** Operations in one Apply: bounds the message and the time for which a commit holds the event loop. */
export const maxApplyOperations = 256;
/** Operations of one wallet in one transition: one Apply fits. */
export const maxBatchOperations = 256;
/** Operations of one wallet that wait for their turn: beyond it the store is not keeping up, and waiting only delays. */
export const maxWaitingOperations = 8_192;

/** Rows of a page of holds or entries. */
export const maxPageSize = 1_000;
/** Rows where the caller names none. */
export const defaultPageSize = 100;
/** Entries read in one go by an audit: a few ms of a synchronous store's time. */
export const auditPageSize = 1_000;

/** Entries read in one go where a journal is added up by key: some ms of a synchronous store's time. */
export const usagePageSize = 500;

/** Of the keys of an account, those whose week is read in one go, at most 168 hours each for every model: some ms of a synchronous store's time. */
export const keysGroupedAtOnce = 50;

/** Time between two looks for holds whose check time has passed, in ms. */
export const sweepIntervalMs = 1_000;
/** Time between two looks for the oldest open hold, in ms: about as often as metrics are read. */
export const holdAgeIntervalMs = 15_000;
/** Due holds read at a look: what is left comes with the next. */
export const sweepPageSize = 256;
/** Owners' answers awaited at once: an owner that was away is not run over when it is back. */
export const sweepConcurrency = 16;
/** An owner's answer, in ms: it reads one record. */
export const askTimeoutMs = 5_000;
/** First pause after an owner could not be asked, or failed on a hold, in ms; doubled each time. */
export const askBackoffMs = 1_000;
/** Longest pause, in ms: an owner that is back is noticed within this. */
export const maxAskBackoffMs = 60_000;
/** Holds with a pause of their own; beyond it the oldest is forgotten, and so asked about sooner. */
export const maxPausedHolds = 10_000;
/** Least time by which a check time moves, in ms: an owner that says "until now" is not asked in a circle. */
export const minKeepMs = 1_000;

/** Operations in one compare-and-set of a wallet document (docs/money.md): what a lost race folds again. */
export const maxTransitionOperations = 64;
/** Entries that a wallet document carries (docs/money.md): about 75 KB of it. */
export const maxTail = 256;
/** Entries at which a tail is copied to the journal: few documents a copy, and room for three more transitions. */
export const tailFlushedAt = 64;
/** Wallets remembered between two transitions: at most 300 KB each (a thousand holds), a few KB as a rule. */
export const maxImages = 1_000;
/** Keys whose counters a remembered wallet carries between two commits: an account can make keys without end. */
export const maxImageKeys = 1_000;
/** Transitions of a wallet that read it anew after another process was seen at work on it. */
export const waryTransitions = 8;
/** Times that a transition may be overtaken before its callers are told to come back. */
export const maxConflicts = 64;
/** Pause after having been overtaken, in ms: up to this, times how often. */
export const conflictPauseMs = 2;
/** Wallet documents read at once where lists are put together of them. */
export const walletBatchSize = 64;

/** Entries that were made while a key's journal was added up, read once more in its transition: some ms of a synchronous store's time. */
export const maxEntriesSince = 500;
/** Times that a key's journal is read on because its wallet was written to meanwhile. */
export const maxTotalsRounds = 64;
/** An operation waits so long for a key's journal to be added up, in ms: less than its caller does before it asks again. */
export const addingWaitMs = 1_500;
/** Keys whose journals are being added up, or were lately. */
export const maxAddings = 1_000;

/** Entries that are counted in one go: some ms of a synchronous store's time, and one command of a document store each. */
export const countedAtOnce = 250;
/** Times that rows of the rollup are tried where other processes count the same entries: each time one of them got on. */
export const maxSlotRounds = 64;
/** Milliseconds for which a call counts what its account's journals have that is not counted yet: its caller waits. */
export const countingMs = 1_000;
/** Hint of the refusal after that, in ms: a million entries take about a minute. */
export const countingRetryMs = 2_000;
/** Milliseconds between two looks at wallets that were written to: what is read meanwhile counts by itself. */
export const countIntervalMs = 1_000;
/** Milliseconds between two looks for wallets that were not noted here: a replica that ended wrote to them last. */
export const behindIntervalMs = 10 * 60_000;
/** Wallets looked at in one go for journals that are not counted. */
export const looksBehind = 500;
/** Lines looked through for one page: some 50 ms, in pieces. A page with a rare filter may end there. */
export const maxLookedThrough = 4_000;
/** Lines read in one such piece: 3 ms of a synchronous store's time. */
export const linesReadOn = 250;
/** Rows of the rollup that an audit reads in one go. */
export const usageRowsPage = 1_000;
/** Buckets of an answer: a week of hours. */
export const maxBuckets = 168;
/** Seconds of the rollup that are grouped in one go, a week: bounds a synchronous store's time. */
export const maxGroupedSeconds = 7 * 86_400;
/** Results after which no further bucket is added to an answer: about 3 MB of JSON. */
export const maxUsageResults = 10_000;
/** Models in a filter: each is a parameter of the store's query. A caller with more asks for all, and groups by model. */
export const maxUsageModels = 100;
/** Lines with the same id, the newest, that are looked through for one of the key's. */
export const maxSameIds = 100;
/** Characters of what a line is looked up by: a model, an id or an `x-request-id`; all of them are shorter. */
export const maxLookUpLength = 200;

/** Largest balance of which an alert is told, in USD micros: nine billion dollars, exact as a number of JSON. */
export const maxLowBalance = 9_000_000_000_000_000n;
/** Alerts of limits that are known to be written down: about 100 bytes each; beyond it one is written, in vain, again. */
export const maxToldAlerts = 10_000;
/** Alerts of an account that are kept: a thousand keys reach a limit of each period within what is kept of it. Some 2 MB. */
export const maxAlertsKept = 5_000;
/** Accounts whose alerts are handed over for delivery in one go; the next go is the next accounts'. */
export const alertAccountsAtOnce = 20;
/** Alerts of one account that are handed over in one go: they are delivered one after the other. */
export const alertsOfAccountAtOnce = 5;
/** Milliseconds between two looks for alerts that may be forgotten. */
export const forgetAlertsMs = 60_000;
/** Alerts that are forgotten at one look. */
export const alertsForgottenAtOnce = 1_000;
