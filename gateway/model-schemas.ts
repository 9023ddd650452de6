// Describes the models of `GET /models` for the OpenAPI document. `models.ts` makes them.

import {
  arrayOf,
  boolean,
  component,
  type Fields,
  fieldsOf,
  integer,
  optional,
  type Schema,
  string,
} from "./schemas.ts";

/** Strings of a list. */
const words = (description: string, values?: readonly string[]) =>
  arrayOf({ type: "string", ...(values && { enum: values }) }, description);
const micros = (what: string) => integer(`USD micros for a million tokens of ${what}.`);

/** A row of a video model. */
export const videoOption: Schema = fieldsOf({
  durationSeconds: integer("Seconds."),
  resolution: string("E.g. `720p`."),
  modes: words("Modes at this price.", ["t2v", "i2v"]),
  credits: integer("Fixed price of a job."),
});

const imageOption = fieldsOf({
  "quality?": string("Absent: any."),
  "size?": string("Absent: any."),
  credits: integer("Credits for each image."),
});

const tokenPrices: Fields = {
  inputUsdMicrosPerMillionTokens: micros("input"),
  cachedInputUsdMicrosPerMillionTokens: micros("input that is read from a cache"),
  outputUsdMicrosPerMillionTokens: micros("output"),
  cacheWriteUsdMicrosPerMillionTokens: micros("input that is written to a cache"),
  cacheWriteLongUsdMicrosPerMillionTokens: micros("input that is written to a longer cache"),
  audioInputUsdMicrosPerMillionTokens: micros("sound in the input"),
  imageInputUsdMicrosPerMillionTokens: micros("images in the input"),
  cachedAudioInputUsdMicrosPerMillionTokens: micros("sound that is read from a cache"),
  audioOutputUsdMicrosPerMillionTokens: micros("sound in the output"),
  imageOutputUsdMicrosPerMillionTokens: micros("images in the output"),
};

const pricing = component(
  "ModelPricing",
  fieldsOf(
    optional({
      ...tokenPrices,
      longInput: arrayOf(
        fieldsOf({
          aboveInputTokens: integer("From more input tokens than this on."),
          ...optional(tokenPrices),
        }),
        "Prices of requests with a long input.",
      ),
      servedTiers: {
        type: "object",
        additionalProperties: { type: "integer" },
        description: "Prices of other service tiers in percent of these, by the tier's name.",
      },
      toolCalls: {
        type: "object",
        additionalProperties: { type: "integer" },
        description: "USD micros for each call of a host's tool, by its family.",
      },
      toolCallLimit: integer("Most calls of such tools in a request that does not say."),
      usdMicrosPerMillionCharacters: integer("Speech: USD micros for a million characters."),
      usdMicrosPerMinute: integer("Transcription: USD micros for a minute of sound."),
    }),
    {
      description:
        "Prices in USD micros. A class without a price of its own is charged as input or output.",
    },
  ),
);

const ofChat: Fields = {
  maxInputTokens: integer("Chat; of an embedding model, of one input."),
  maxOutputTokens: integer("Chat: most tokens of output."),
  safetyMarginTokens: integer("Chat: tokens that input and output together leave free."),
  reasoningEfforts: words("Chat: accepted efforts."),
  reasoningAliases: {
    type: "object",
    additionalProperties: { type: "string" },
    description: "Chat: other names of efforts, in any case.",
  },
  inputModalities: words("Chat: kinds of content that a request may have."),
  tools: words("Chat: types of tools; `*`: all."),
  responsesCapable: boolean("Chat: does it serve `POST /responses`?"),
};

const ofVideo: Fields = {
  t2vEnabled: boolean("Video: text-to-video."),
  i2vEnabled: boolean("Video: image-to-video."),
  videoOptions: arrayOf(videoOption, "Video: durations, resolutions, modes and prices."),
  availableOptions: arrayOf(videoOption, "Video: the same rows."),
  durations: arrayOf({ type: "integer" }, "Video: seconds, of all rows."),
  approxRuntimeSeconds: integer("Video: seconds that a job takes, roughly."),
  safetyCheck: fieldsOf(
    optional({
      t2v: string("Of text-to-video.", { enum: ["applied", "none", "standard"] }),
      i2v: string("Of image-to-video.", { enum: ["applied", "none", "standard"] }),
    }),
    { description: "Video: whether inputs are checked." },
  ),
  nativeAudio: string("Video: its own sound.", { enum: ["none", "mono", "stereo"] }),
  firstLastFrame: boolean("Video: from a first to a last reference?"),
};

const ofOthers: Fields = {
  creditPrice: integer("Image and music: credits each."),
  imageOptions: arrayOf(imageOption, "Image: prices by quality and size, where they differ."),
  maxImages: integer("Image: most images of a request."),
  maxReferences: integer("Image and video: most references of a request."),
  masks: boolean(
    "Image: `mask` says what of the first reference may change. Absent: no mask is taken.",
  ),
  sizes: words("Image and video: accepted sizes."),
  resolutions: words("Image and video: accepted resolutions."),
  availableAspectRatios: words("Image and video: accepted aspect ratios."),
  maxPromptCharacters: integer("Image and video: most characters of a prompt."),
  modes: words("Music: its modes.", ["instrumental", "lyrics"]),
  optionalParameters: words(
    "Image, video and music: what a request may have beside what each model of the kind takes, in every mode; `n`: more " +
      "than one; `references`: `referenceFileIds` and `input_reference`.",
    ["negativePrompt", "seed", "n", "references"],
  ),
  voices: words("Speech: accepted voices."),
  languages: words("Speech: accepted languages; none: any."),
  formats: words("Speech: formats of the sound."),
  speed: fieldsOf(
    {
      min: { type: "number", description: "Slowest." },
      max: { type: "number", description: "Fastest." },
      default: { type: "number", description: "Where none is asked for." },
    },
    { description: "Speech: its pace." },
  ),
  maxInputCharacters: integer("Speech: most characters of a text."),
  maxInputs: integer("Embedding: inputs of one request."),
  maxSeconds: integer("Transcription: longest sound."),
  pricing: { $ref: "ModelPricing#" },
};

const model = component(
  "Model",
  fieldsOf(
    {
      id: string("Model id."),
      object: string("", { enum: ["model"] }),
      created: integer("Unix seconds."),
      owned_by: string("Owner."),
      type: string("For Anthropic's clients.", { enum: ["model"] }),
      display_name: string("`name`, for Anthropic's clients."),
      created_at: string("`created`, for Anthropic's clients.", { format: "date-time" }),
      kind: string("What it makes.", {
        enum: ["chat", "image", "video", "speech", "music", "embedding", "transcription"],
      }),
      name: string("For people."),
      "description?": string("For people."),
      default: boolean("The default of its kind; published, never assumed."),
      ...optional({
        deprecatedAt: string("From then on, use another model. Absent: nothing is announced.", {
          format: "date-time",
        }),
        shutdownDate: string("From then on, the model may be gone. Absent: nothing is announced.", {
          format: "date-time",
        }),
        ...ofChat,
        ...ofVideo,
        ...ofOthers,
      }),
    },
    { description: "A model, and what a form for it needs.", additionalProperties: true },
  ),
);

/** Components of `GET /models`. */
export const modelComponents: readonly Schema[] = [model, pricing];
