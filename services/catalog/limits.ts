// The bounds and defaults of a catalog file and of the service that reads it, each with its unit and reason.

/** Largest catalog file, in bytes: the size of a ConfigMap. */
export const maxFileBytes = 1024 * 1024;
/** Largest workflow file, in bytes. A workflow of a hundred nodes has 100 KiB, and every job that uses it keeps it. */
export const maxWorkflowBytes = 256 * 1024;
/** Workflow files of one catalog. Each is read every time that the file is. */
export const maxWorkflows = 100;
/** Largest snapshot on the wire, in bytes. A gRPC client of any language takes 4 MiB by default. */
export const maxSnapshotBytes = 3 * 1024 * 1024;
/** How often one YAML anchor may be used, nesting multiplied. This stops a file that unfolds without end. */
export const maxAliasUses = 200;
/** Depth to which a place in the file is looked up. The schema itself is 6 deep. */
export const maxDepth = 16;
/** Faults that are reported at once. A file of another kind would give thousands. */
export const maxFaults = 100;

/** Models of one file. An answer of `GET /models` lists them all, without pages. */
export const maxModels = 1000;
/** Upstreams of one file. One operator has keys and machines for fewer. Each upstream has its own connections and figures. */
export const maxUpstreams = 200;
/** Items of any other list (rows, voices, ratios, tools, …). Each is published with its model. */
export const maxListItems = 500;
/** Fallbacks of one model. Each may cost a connect time-out before the caller gets an answer. */
export const maxFallbacks = 8;

/** Members of a pool: more machines or accounts for one model than most operators have. A request looks at each. */
export const maxPoolMembers = 16;
/** Greatest weight of a pool's member. Shares of a hundredth are as fine as an operator needs. */
export const maxWeight = 100;
/** Keys of one upstream. A request looks at each. */
export const maxKeys = 16;

/** Characters of a model's id, which travels in paths and metric labels. */
export const maxIdCharacters = 128;
/** Characters of names, voices, languages, efforts and the like. */
export const maxNameCharacters = 200;
/** Characters of a base URL or a description. */
export const maxTextCharacters = 2000;
/** Characters of a chain of certificates in PEM: 32 KiB of them, which base64 makes a third longer, and the lines around them. */
export const maxCertificateCharacters = 65_536;
/** Characters of a developer prompt. It is counted and charged with every request. */
export const maxDeveloperPromptCharacters = 65_536;
/** Bytes of a token of usual text. A developer prompt with more bytes for each token of a window leaves no room for a caller. */
export const bytesPerToken = 4;

/** Most tokens of a limit. With the largest price, a hold is still an integer that JSON keeps exactly. */
export const maxTokens = 100_000_000;
/** Most tokens of output that a second of silence may count as: ten times what the fastest hardware generates. */
export const maxHiddenTokensPerSecond = 40_000;
/** Most credits or USD micros of any price. A million dollars for a million units is a typing error. */
export const maxPrice = 1_000_000_000_000;
/** Rows of prices for a long input. The known price lists have one. */
export const maxLongInputRows = 4;
/** Most percent of the token prices for a service tier. With the largest price, a hold is still an integer that JSON keeps exactly. */
export const maxTierPercent = 1_000;
/** Most calls of tools for which one request is held. A hold for more would be a typing error of the operator's. */
export const maxToolCalls = 1_000;
/** Default of `toolCallLimit`: a search turn of today's models takes two to six. */
export const defaultToolCalls = 8;
/** Most seconds of one video: an hour, far above any model's. More is a typing error. */
export const maxDurationSeconds = 3600;
/** Most seconds of one audio file that is transcribed: a day, more than 25 MiB hold. */
export const maxSoundSeconds = 86_400;
/** References of one request. Each is held in memory while a job is made. */
export const maxReferences = 64;
/** Inputs of one request for embeddings: OpenAI's own bound. */
export const maxEmbeddingInputs = 2_048;
/**
 * Default of `maxInputs`. That many vectors of 1,536 numbers, written as decimals, are 8 MiB, the most that is kept for an idempotency
 * key.
 */
export const defaultEmbeddingInputs = 256;
/** Requests or jobs under way at an upstream from one process. */
export const maxInFlight = 100_000;

/** Longest time-out, in milliseconds. A day is longer than any generation and well inside the range of a timer. */
export const maxTimeoutMs = 86_400_000;
/** Pause between two deltas of the builtin upstream, milliseconds. */
export const maxTokenDelayMs = 10_000;

/** Default of `timeoutMs`, in milliseconds. Long reasoning answers take minutes. */
export const defaultTimeoutMs = 600_000;
/** Default of `idleTimeoutMs`, in milliseconds. Models that think in silence get two minutes. */
export const defaultIdleTimeoutMs = 120_000;
/**
 * Default of `connectTimeoutMs`, in milliseconds: a TLS handshake around the world and two lost packets. After that a fallback is
 * called.
 */
export const defaultConnectTimeoutMs = 10_000;
/** Default of `tokenDelayMs`, in milliseconds: a fast human reading pace. */
export const defaultTokenDelayMs = 15;

/** Time between two reads of the file, in milliseconds. A change is in force after at most four, within the promised 2 s. */
export const pollMs = 500;
/** Reads during which a file may keep changing. At the next read it is judged. */
export const maxUnsettledLooks = 2;
/**
 * Time between two heartbeats to a watcher, in milliseconds. A watcher that missed three closes its connection (`silenceMs` of the
 * client).
 */
export const heartbeatMs = 5_000;

/** Bytes of a draft that is only judged. A file in force may have as many. */
export const maxDraftBytes = maxFileBytes;
/** Characters of the fields in a verdict on a draft: thousands of prices. They cost a few ms of each event loop on their way. */
export const maxDraftChangeCharacters = 256 * 1024;
/** Drafts that are judged at once, drafts that wait, and how long, in ms. Operators send them by hand. */
export const draftShare = { places: 1, each: { places: 1, waiting: 8 }, waitMs: 20_000 } as const;
/** Milliseconds for one draft, the start of the thread included: a hundred times the time of the largest honest one. */
export const draftTimeoutMs = 20_000;

/** Bytes of a version's text with its workflow files. A document of MongoDB has 16 MiB. */
export const maxVersionBytes = 12 * 1024 * 1024;
/** Characters of an operator's words about a version: a sentence for a list. */
export const maxNoteChars = 200;
/** Characters of an operator's name. The audit log has the same bound. */
export const maxActorChars = 300;
/** Characters of an operation id, as the operator's routes have them. */
export const maxOperationIdChars = 100;
/** Stored keys of upstreams: as many as a file may have upstreams. All of them travel together. */
export const maxStoredKeys = maxUpstreams;
/** Last characters of a key that are shown, and the fewest that such a key has: 16 stay unseen. */
export const [hintChars, hintedKeyChars] = [4, 20] as const;
/** Versions of a page, as many as the console shows. */
export const versionPages = { most: 100, default: 25 } as const;
