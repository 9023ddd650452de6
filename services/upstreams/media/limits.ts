// The bounds, times and tries of all drivers of media.

const mib = 1024 * 1024;
/** Jobs of one account that wait for room in memory: about as many as one process has. */
const waiting = 1_000;

/** Bounds of requests to media upstreams and of their answers, each with its reason. */
export const generateLimits = {
  /** Bytes of one generated image. 2k PNGs of noise reach 12 MiB. */
  imageBytes: 32 * 1024 * 1024,
  /** Pixels of one generated image: as many as an upload may have. */
  imagePixels: 50_000_000,
  /**
   * Bytes of an answer with ten 2k images of noise in base64, with room to spare. A prompt can ask for them, and an answer that is too
   * large was still paid for. A video within an answer then has at most 130 MiB. One that the answer names may have more.
   */
  imageAnswerBytes: 176 * 1024 * 1024,
  /** An answer's bytes for one image: the largest accepted image, in base64, with room for text about it. */
  imageInAnswerBytes: 44 * mib,
  /**
   * Bytes of images and of answers with images or other files that are in memory at once: one of the largest answers, and some others.
   * Each exists up to four times: as it came, without JSON's escapes, without line breaks, and as a file. They are first written to a
   * file, and take memory when they are complete. So no data that holds memory waits for an upstream. An image was paid for, so its job
   * may wait for memory as long as the job may take.
   */
  imagesInMemory: {
    places: 256 * mib,
    each: { places: 192 * mib, waiting },
    waitMs: 30 * 60_000,
  },
  /**
   * The least bytes of memory that an image or an answer takes. So at most as many wait for a decoder at once as it can serve in their
   * time.
   */
  leastImageRoom: 4 * mib,
  /**
   * Bytes of references in requests at once, each of which exists twice. An upstream that makes images within the request keeps them
   * until its answer. A job that finds no room in a minute is offered to the upstream again later.
   */
  referencesInMemory: {
    places: 512 * mib,
    each: { places: 256 * mib, waiting },
    waitMs: 60_000,
  },
  /** Bytes of any other JSON answer, and of the text beside files in an answer: ids, states and URLs. */
  answerBytes: 1024 * 1024,
  /**
   * A longer text of an answer is not parsed with the rest. No id, state or URL is that long, and each such text may be a part of a
   * file.
   */
  parsedTextBytes: 4 * 1024,
  /** Bytes of one generated video. 15 s of 1080p take 30 MiB, and a wasteful encoder makes ten times that. */
  videoBytes: 512 * 1024 * 1024,
  /** Bytes of one piece of music: an hour at 128 kbit/s. */
  musicBytes: 64 * 1024 * 1024,
  /**
   * Bytes of speech: the longest text at the normal pace, in any script and format. 4,096 Chinese characters are 20 minutes, which are
   * 57 MiB of samples. A request for longer speech is refused before it is sent (media/speech/length.ts).
   */
  speechBytes: 64 * mib,
  /** Bytes of all references in one request. They are in memory meanwhile. */
  referencesBytes: 140 * 1024 * 1024,
  /** Longest id that an upstream may give a task. It is stored with the job. */
  resumeIdChars: 300,
} as const;

/** Times of exchanges with media upstreams. */
export const generateTimes = {
  /** Milliseconds for a look at a task's state: a small answer that needs no generation. */
  lookMs: 30_000,
  /** First and longest pause between two looks at a task, in milliseconds. */
  firstPauseMs: 1_000,
  longestPauseMs: 5_000,
  /** Longest pause, in milliseconds, that an upstream's Retry-After may ask for. A longer one leaves the job to a later attempt. */
  longestRetryAfterMs: 30_000,
  /** First pause before a repeat, in milliseconds. Each further one is twice as long. */
  firstRetryMs: 500,
  /**
   * How long a missing file that an answer has just named is requested again, in milliseconds. Stores that copy their files, and caches
   * that remember a 404, have it within some seconds. The job holds a place of its upstream's meanwhile.
   */
  lateFileMs: 30_000,
  /** Milliseconds for a submission at another deployment, which only accepts the job. */
  submitMs: 60_000,
  /** Milliseconds for a download from outside the upstream's origin: the largest video at 7 Mbit/s. */
  outsideMs: 600_000,
  /** A download from there has broken off after this many milliseconds without a byte. */
  outsideIdleMs: 30_000,
  /**
   * Milliseconds in which an upstream speaks, where the catalog allows it longer. It is below the 14 minutes of the caller's request, so
   * that this time is over first.
   */
  speakMs: 13 * 60_000,
  /** Milliseconds that a request for speech waits for its place at an upstream with a bound. */
  slotWaitMs: 10_000,
} as const;

/** How often one step is tried before it is left to a later attempt. */
export const generateTries = {
  /** Tries of a call that starts something and may be repeated. */
  start: 3,
  /** Looks at a task. An upstream that restarts comes back within half a minute. */
  look: 6,
  /** Tries of downloads that take longer than `lateFileMs`. */
  download: 3,
  /** A task counts as lost after this many looks in a row that do not find it at a ComfyUI server. */
  nowhere: 2,
} as const;

/** Bounds of a plausible video. No caller can ask for one outside of them. */
export const videoSanity = {
  /** Seconds. */
  longest: 600,
  /** The least share of the requested length that a video must have. Upstreams round to frames, not to halves. */
  leastShare: 0.5,
  /** Pixels of a side. */
  longestSide: 8192,
  /** Bytes of a video's index, which is in memory. An hour's takes 4 MiB. */
  indexBytes: 16 * 1024 * 1024,
} as const;
