/** Largest catalog file, bytes: what a ConfigMap can hold. */
export const maxFileBytes = 1024 * 1024;
/** Largest workflow file, bytes: those of a hundred nodes have 100 KiB, and every job that it makes keeps it. */
export const maxWorkflowBytes = 256 * 1024;
/** Workflow files of one catalog: each is read at every look. */
export const maxWorkflows = 100;
/** Largest snapshot on the wire, bytes: a gRPC client of any language takes 4 MiB unless told otherwise. */
export const maxSnapshotBytes = 3 * 1024 * 1024;
/** How often one YAML anchor may be used, nesting multiplied: stops a file that unfolds without end. */
export const maxAliasUses = 200;
/** Depth to which a place in the file is looked up; the schema itself is 6 deep. */
export const maxDepth = 16;
/** Faults that are reported at once: a file of another kind would give thousands. */
export const maxFaults = 100;

/** Models of one file; an answer of `GET /models` lists them all, without pages. */
export const maxModels = 1000;
/** Upstreams of one file: more than one operator has keys and machines for; each has its own connections and figures. */
export const maxUpstreams = 200;
/** Items of any other list (rows, voices, ratios, tools, …): each is published with its model. */
export const maxListItems = 500;
/** Fallbacks of one model: each may cost a connect time-out before the caller gets an answer. */
export const maxFallbacks = 8;

/** Characters of a model's id, which travels in paths and metric labels. */
export const maxIdCharacters = 128;
/** Characters of names, voices, languages, efforts and the like. */
export const maxNameCharacters = 200;
/** Characters of a base URL or a description. */
export const maxTextCharacters = 2000;
/** Characters of a developer prompt; it is counted and charged with every request. */
export const maxDeveloperPromptCharacters = 65_536;
/** Bytes of a token of usual text: a developer prompt of more for each token of a window leaves no room for a caller. */
export const bytesPerToken = 4;

/** Tokens of a limit: with the largest price, a hold is still an integer that JSON keeps exactly. */
export const maxTokens = 100_000_000;
/** Tokens of output that a second of silence counts as: ten times what the fastest hardware generates. */
export const maxHiddenTokensPerSecond = 40_000;
/** Credits or USD micros of any price: a million dollars for a million units is a slip of the finger. */
export const maxPrice = 1_000_000_000_000;
/** Seconds of one video: an hour, far above what any model makes; more is a slip of the finger. */
export const maxDurationSeconds = 3600;
/** Seconds of one sound that is transcribed: a day, more than 25 MiB hold. */
export const maxSoundSeconds = 86_400;
/** References of one request: each is held in memory while a job is made. */
export const maxReferences = 64;
/** Inputs of one request for embeddings: OpenAI's own bound. */
export const maxEmbeddingInputs = 2_048;
/**
 * Default of `maxInputs`: as many vectors of 1,536 numbers, written as decimals, are 8 MiB, the most that is kept for an
 * idempotency key.
 */
export const defaultEmbeddingInputs = 256;
/** Requests or jobs in flight to an upstream from one process. */
export const maxInFlight = 100_000;

/** Time-outs, milliseconds: a day is longer than any generation and well inside what a timer can count. */
export const maxTimeoutMs = 86_400_000;
/** Pause between two deltas of the builtin upstream, milliseconds. */
export const maxTokenDelayMs = 10_000;

/** Default of `timeoutMs`, milliseconds: long reasoning answers take minutes. */
export const defaultTimeoutMs = 600_000;
/** Default of `idleTimeoutMs`, milliseconds: models that think in silence are given two minutes. */
export const defaultIdleTimeoutMs = 120_000;
/** Default of `connectTimeoutMs`, milliseconds: a TLS handshake around the world and two lost packets; then a fallback is asked. */
export const defaultConnectTimeoutMs = 10_000;
/** Default of `tokenDelayMs`, milliseconds: a brisk human reading pace. */
export const defaultTokenDelayMs = 15;

/** Time between two looks at the file, milliseconds. A change is in force after at most four, within the promised 2 s. */
export const pollMs = 500;
/** Looks at which a file may keep changing before it is judged as it stands. */
export const maxUnsettledLooks = 2;
/** Time between two heartbeats to a watcher, milliseconds: a watcher that missed three gives its connection up (`silenceMs` of the client). */
export const heartbeatMs = 5_000;

/** Bytes of a draft that is only judged: as large as a file in force. */
export const maxDraftBytes = maxFileBytes;
/** Characters of the fields that a verdict on a draft tells: thousands of prices, and a few ms of every loop on their way. */
export const maxDraftChangeCharacters = 256 * 1024;
/** Drafts judged at once, and drafts that wait, and how long, in ms: operators ask by hand. */
export const draftShare = { places: 1, each: { places: 1, waiting: 8 }, waitMs: 20_000 } as const;
/** For one draft, the thread's start included, in ms: a hundred times what the largest honest one takes. */
export const draftTimeoutMs = 20_000;
