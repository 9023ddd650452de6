// Says in words what each key of a catalog file means. `schema.ts` says which keys there are.

/**
 * The meaning of each key of a catalog file, in a sentence or two. `genmesh catalog explain` and the JSON schema show it. Where a key
 * means something else below another key, its entry has both names: `poll.key`. The longest entry that fits a path is its meaning.
 */
export const keyWords: Readonly<Record<string, string>> = {
  developerPrompt:
    "The text before the caller's own instructions in every text request. A chat model may have another one, or an empty one for none. Counted and charged as input, never shown to a caller.",
  upstreams: "The servers of the models, by their names in this file.",
  pools:
    "Pools of upstreams that share requests, by their names in this file. A model names a pool as its upstream.",
  models: "The models, in the order in which GET /models lists them.",
  contentCredentials:
    "The certificate and key by which made PNG, JPEG and MP4 say of themselves that a model made them (C2PA). Absent: files stay as they came.",
  certificate:
    "The signer's certificate and behind it those that vouch for it, as text in PEM. Its purpose is e-mail protection, document signing or C2PA.",
  keyEnv:
    "The name of the environment variable with the certificate's private key in PEM. Never the key itself.",
  keyFile:
    "The absolute path of a file with the certificate's private key in PEM. It is read for each file, so a new key counts at once.",

  // Upstreams
  protocol: "How the upstream is asked. It decides which other keys the upstream has.",
  baseUrl:
    "The address below which all paths of the upstream lie. Without user, query or fragment.",
  apiKeyEnv: "The name of the environment variable that holds the key. Never the key itself.",
  apiKeyEnvs:
    "The names of several variables with one key each. The keys share the upstream's requests.",
  apiKeyFile:
    "The absolute path of a file with the key. It is read for each request, so a new key counts at once.",
  apiKeyStored:
    "The name of a key that an operator stored in the console or by genmesh catalog set-key. A key that is set anew counts within 2 s.",
  timeoutMs: "The longest request from its start to its last byte, in milliseconds.",
  idleTimeoutMs: "The silence after which a stream counts as cut, in milliseconds.",
  connectTimeoutMs: "The longest wait for a connection, in milliseconds.",
  maxConcurrent:
    "The most requests and jobs of one process at once. At a model: its jobs alone. Absent: no bound.",
  chargesWhenCancelled:
    "Does the upstream charge for a job that is canceled after it was sent? Then a caller that cancels pays the job's price.",
  lostAnswer:
    "For a job whose answer was lost, so that it may have been made: request it again, or fail it. Default: again for images and where the upstream repeats safely, fail for videos and music. At a model: in place of its upstream's value.",
  inlineImages: "Fetch image URLs here and send the images inline, for a server without internet.",
  outputLimit:
    "The upstream's name for the bound of a text answer's output. With none it gets no bound, and genmesh cuts the output.",
  betas:
    "The beta features of Messages that the upstream may be asked for, each with its field. [] for a server that knows none.",
  blockTypes:
    "Types of blocks in messages that pass at this upstream beside the known ones, unchanged both ways.",
  autoCache:
    "The cache that is asked for where callers cannot ask: entries of five minutes, of an hour, or none. Writes into it need a price.",
  tokenDelayMs: "The pause between two pieces of built-in text, in milliseconds. 0: none.",
  references: "How reference images reach the upstream: in the request, or uploaded first.",

  // The HTTP of an upstream of protocol `jobs`
  jobs: "The HTTP of the upstream: how a task begins, how it is looked at, and the meaning of its answers.",
  auth: "How the key is sent. Absent: as Authorization: Bearer KEY.",
  "auth.header": "The header that holds the key, and nothing else.",
  "auth.scheme": "The word before the key in the Authorization header.",
  jwt: "The algorithm of a token that is signed with the key for each request.",
  issuerEnv: "The name of the environment variable with the access key, which the token names.",
  seconds: "How long a signed token is valid, in seconds.",
  headers:
    "Headers of all requests, or of one step. ${uuid} in a value is another UUID in each request.",
  create: "The request that begins a task. Its body is the filled input of the model's call.",
  get: "The path of a GET below baseUrl. It may name ${model}, ${job} and what was taken before.",
  post: "The path of a POST below baseUrl. It may name ${model}, ${job} and what was taken before.",
  put: "The path of a PUT below baseUrl. It may name ${model}, ${job} and what was taken before.",
  delete:
    "The path of a DELETE below baseUrl. It may name ${model}, ${job} and what was taken before.",
  take: "Names for what later requests need of the answer, each with its place there.",
  "create.key": "The header that holds the job's id, like job_…, as an idempotency key.",
  gives: "With file, the answer is the file itself.",
  poll: "The look at a task. Absent: the answer to create is the result.",
  body: "The body of the request. It may name what was taken before.",
  state: "The place of the task's state in the answer.",
  progress: "The place of the task's progress in the answer.",
  progressOf: "The number at which progress ends: 100 or 1.",
  everyMs: "Milliseconds between two looks. Absent: one second at first, growing to five seconds.",
  states:
    "The meaning of each state: running, done, failed or refused. Another state counts as running.",
  result: "One more request once the task is done. The output is a place in its answer.",
  answers:
    "The meaning of other values in an answer, by their places. * stands for any text, !0 for anything but 0.",
  "answers.refused": "The request was refused for its content.",
  empty: "The operator's account at the upstream has no money.",
  busy: "There are too many tasks. The request is sent again later.",
  denied: "The key is wrong, or may not do this.",
  unsure: "The task may have begun.",
  failed: "The task failed.",
  cancel: "The request that cancels a task. Absent: a task cannot be canceled.",
  when: "The states in which the cancel is sent.",
  says: "The answer of a success.",
  origins: "Further origins that get the key, like https://*.example.com.",
  download: "With key, files of the origin of baseUrl and of origins are fetched with the key.",
  check: "A question that costs nothing, for genmesh catalog check --online.",
  "check.models": "The place of the model names in the answer.",
  openapi:
    "The URL of a description of the inputs, to which genmesh catalog check --online compares each call.",

  // Pools
  members: "The upstreams of the pool. All have one protocol.",
  "members.upstream": "The name of an upstream above.",
  weight: "Its share of the requests, beside the weights of the other members.",
  upstreamModels: "The members' names of the model, where they differ.",

  // Every model
  id: "The name of the model for callers. Unique.",
  kind: "What the model makes or does. It decides which other keys the model has.",
  name: "The name of the model for people.",
  description: "What the model is good for, in a sentence for people.",
  active: "With false it is neither listed nor usable.",
  "videoOptions.active": "With false the row is neither listed nor usable.",
  default: "Published as the default of its kind. At most one of a kind, and an active one.",
  upstream: "The name of an upstream or a pool above.",
  upstreamModel: "The upstream's name of the model, where that is not the id.",
  fallbackUpstreams: "Tried in this order where the first upstream fails before any output.",
  deprecatedAt:
    "The day or time from which the model is announced as deprecated. It changes nothing by itself.",
  shutdownDate: "The day or time at which the model will go. It changes nothing by itself.",

  // Chat and embedding
  maxInputTokens: "The most tokens of input. For embeddings: of one input.",
  maxOutputTokens: "The most tokens of output.",
  safetyMarginTokens: "Tokens kept free of input, for those that the upstream adds.",
  reasoningEfforts: "The efforts that the model knows. Another one is refused.",
  reasoningAliases: "Other names for efforts, matched without case.",
  imageTokensAtLeast: "The least tokens that are held for one image, however small.",
  imageTiles: "For a model that counts an image by tiles of 512 pixels: its tokens of each.",
  base: "Tokens of an image beside those of its tiles.",
  each: "Tokens of one tile.",
  audioTokensPerSecond: "Tokens of one second of audio in the input.",
  hiddenTokensPerSecond:
    "For hidden reasoning: the tokens of output that each second without output counts as, where a caller leaves before the upstream's usage.",
  inputModalities: "The kinds of input that the model takes.",
  tools: 'The types of tools that callers may name. "*" allows unknown ones too.',
  serviceTier: "The service tier that is asked of the upstream. Callers cannot choose it.",
  passParameters:
    'Further properties of a request that are sent to the upstream. ["*"] sends all of them. Name only those that a caller may safely set.',
  forcedTools:
    "At an upstream of Messages: false for a model that refuses a choice which makes it call a tool.",
  blockBinding:
    "At an upstream of Messages: the fate of thinking from behind another beginning. It is dropped there by default; off for a model that does not know that.",
  maxInputs: "The most inputs of one request.",
  maxSeconds: "The longest audio, in seconds.",

  // Prices
  pricing: "The prices that callers pay, in USD micros: millionths of a dollar.",
  inputUsdMicrosPerMillionTokens: "USD micros for a million tokens of input.",
  cachedInputUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of input that the upstream had in its cache. Absent: the price of input.",
  outputUsdMicrosPerMillionTokens: "USD micros for a million tokens of output.",
  cacheWriteUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of input that are written to a cache. Absent: the price of input.",
  cacheWriteLongUsdMicrosPerMillionTokens:
    "USD micros for a million tokens that are written to a cache for long. Absent: the price of other cache writes.",
  audioInputUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of audio in the input. Absent: the price of input.",
  imageInputUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of images in the input. Absent: the price of input.",
  cachedAudioInputUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of audio from a cache. Absent: the price of cached input.",
  audioOutputUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of audio in the output. Absent: the price of output.",
  imageOutputUsdMicrosPerMillionTokens:
    "USD micros for a million tokens of images in the output. Absent: the price of output.",
  longInput:
    "Prices of the whole request where its input is longer than a bound, in ascending rows. A row names every price that stands above.",
  aboveInputTokens: "The row counts where the input has more tokens than this.",
  servedTiers: "Percent of all token prices, by the service tier that the answer names.",
  toolCalls: "USD micros for one call of a hosted tool, by its family.",
  toolCallLimit:
    "The calls of hosted tools that one request is held for. The upstream gets it as max_tool_calls or max_uses.",
  upstreamCost:
    "The operator's own prices at the upstream. Callers are neither charged nor shown them.",
  usdMicrosPerMillionCharacters: "USD micros for a million characters of spoken text.",
  usdMicrosPerMinute: "USD micros for a minute of audio.",
  creditPrice: "Credits for one image, or for one piece of music.",

  // Images, videos, music and speech
  sizes: "The sizes that callers may ask for, like 1024x1024.",
  resolutions: "The resolutions that callers may ask for.",
  availableAspectRatios: 'The ratios that callers may ask for, like "16:9", and auto.',
  maxReferences: "The most reference images of one request. 0: none.",
  masks:
    "With true, a request may have a mask: a PNG whose transparent pixels say what of the first reference may change.",
  maxImages: "The most images of one request.",
  imageOptions: "Prices by quality and size. The first row that fits counts, else creditPrice.",
  quality: "The quality for which the row counts. Absent: each.",
  size: "The size for which the row counts. Absent: each.",
  credits: "The price in credits.",
  approxRuntimeSeconds: "About how long a video takes, in seconds. Published for callers.",
  safetyCheck: "The upstream's checks of content, by mode. Published for callers.",
  nativeAudio: "The sound that comes with the video. Published for callers.",
  firstLastFrame: "With true, a second reference image is the last frame.",
  videoOptions:
    "The videos on offer, one row each. The first row that fits a request is its default.",
  durationSeconds: "The length of the video, in seconds.",
  resolution: "The resolution of the video, like 720p.",
  modes: "Video from text alone (t2v), and from a reference image (i2v).",
  voices: "The voices that callers may ask for.",
  upstreamVoices: "The upstream's names for voices, where they differ.",
  languages: "The languages that the model speaks.",
  formats: "The formats of its files.",

  // Calls of upstreams whose models have each an input of their own
  call: "How the model is called at an upstream whose models have each an input of their own.",
  model: "The upstream's name of the model, like owner/name.",
  workflow: "The file of a ComfyUI workflow, beside this file.",
  input: "The input as a template. ${prompt} and the like are filled in from the request.",
  output: "The place of the outputs in the answer. In a workflow: the node that makes them.",
  refused: "The place that states which outputs were refused for their content, as booleans.",
  t2v: "For a video from text alone.",
  i2v: "For a video from a reference image.",
  firstLast: "The call for a video from a first and a last frame.",
  "call.references": "The call for a video from several reference images.",
};
