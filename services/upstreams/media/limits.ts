const mib = 1024 * 1024;
/** Jobs of one account that wait for room in memory: about as many as one process has. */
const waiting = 1_000;

/** Bounds of what media upstreams are sent, asked and believed, each with its reason. */
export const generateLimits = {
  /** One generated image. 2k PNGs of noise reach 12 MiB. */
  imageBytes: 32 * 1024 * 1024,
  /** Pixels of one generated image: what uploads may have too. */
  imagePixels: 50_000_000,
  /**
   * An answer with ten 2k images of noise in base64, with room: a prompt can ask for them, and what is too large to be
   * taken was paid for all the same. A film in an answer has 130 MiB then, where one that is named may have more.
   */
  imageAnswerBytes: 176 * 1024 * 1024,
  /** An answer's part for one image: the largest that is taken, in base64, with room for words about it. */
  imageInAnswerBytes: 44 * mib,
  /**
   * Bytes of answers with images or other files, and of images, in memory at once: one of the largest answers, and some others. Each is
   * there up to four times: as it came, without JSON's escapes, without line breaks, and as a file. They come to a file, and take room when they are
   * whole: what holds room waits for no upstream. An image was paid for, so that its room is waited for as long as its job may take.
   */
  imagesInMemory: {
    places: 256 * mib,
    each: { places: 192 * mib, waiting },
    waitMs: 30 * 60_000,
  },
  /** Room that an image or an answer takes at least, in bytes: so no more of them wait for a decoder at once than it does in their time. */
  leastImageRoom: 4 * mib,
  /**
   * Bytes of references in requests at once, each there twice: an upstream that makes images within the request keeps them
   * until its answer. Who finds no room in a minute is offered to the upstream again later.
   */
  referencesInMemory: {
    places: 512 * mib,
    each: { places: 256 * mib, waiting },
    waitMs: 60_000,
  },
  /** Any other JSON answer, and what one with files says beside them: ids, states and URLs. */
  answerBytes: 1024 * 1024,
  /** A text of an answer that is longer stays out of what is parsed: no id, state or URL is, and each may be a part of a file. */
  parsedTextBytes: 4 * 1024,
  /** One generated video: 15 s of 1080p take 30 MiB, a lavish encoder ten times that. */
  videoBytes: 512 * 1024 * 1024,
  /** One clip of music: an hour at 128 kbit/s. */
  musicBytes: 64 * 1024 * 1024,
  /**
   * Speech: the longest text at the normal pace, in any script and format. 4,096 Chinese characters are 20 minutes, 57 MiB where they
   * are samples. What would be longer is refused before it is sent (media/speech/length.ts).
   */
  speechBytes: 64 * mib,
  /** References sent in one request, together: they lie in memory meanwhile. */
  referencesBytes: 140 * 1024 * 1024,
  /** Longest id that an upstream may give a task; it is stored with the job. */
  resumeIdChars: 300,
} as const;

/** Times of exchanges with media upstreams. */
export const generateTimes = {
  /** Milliseconds for a look at a task's state: a small answer that needs no generation. */
  lookMs: 30_000,
  /** First and longest pause between two looks at a task, in milliseconds. */
  firstPauseMs: 1_000,
  longestPauseMs: 5_000,
  /** Longest pause that an upstream's Retry-After may ask for; longer ones leave the job to a later attempt. */
  longestRetryAfterMs: 30_000,
  /** First pause before a repeat; each further one is twice as long. */
  firstRetryMs: 500,
  /**
   * How long a file that an answer has just named is asked for while it does not come, in milliseconds: stores that copy what
   * they are given, and caches that remember a 404, have it within some seconds; and the job holds a place of its upstream's meanwhile.
   */
  lateFileMs: 30_000,
  /** Milliseconds for a submission at another deployment: it only accepts the job. */
  submitMs: 60_000,
  /** Milliseconds for a download from outside the upstream's origin: the largest video at 7 Mbit/s. */
  outsideMs: 600_000,
  /** Milliseconds without a byte after which such a download has broken off. */
  outsideIdleMs: 30_000,
  /** Milliseconds that a request for speech waits for its place at an upstream with a bound. */
  slotWaitMs: 10_000,
} as const;

/** How often one step is tried before it is left to a later attempt. */
export const generateTries = {
  /** A call that starts something and may be repeated. */
  start: 3,
  /** Looks at a task: an upstream that restarts comes back within half a minute. */
  look: 6,
  /** Downloads that take longer than `lateFileMs`. */
  download: 3,
  /** Looks in a row that must not find a task at a ComfyUI server before it is taken for lost. */
  nowhere: 2,
} as const;

/** Sanity of a video: what lies outside of it is no video that a caller can ask for. */
export const videoSanity = {
  /** Seconds. */
  longest: 600,
  /** The share of the asked length that a video must have: upstreams round to frames, not to halves. */
  leastShare: 0.5,
  /** Pixels of a side. */
  longestSide: 8192,
  /** The index of a video lies in memory: an hour's takes 4 MiB. */
  indexBytes: 16 * 1024 * 1024,
} as const;
