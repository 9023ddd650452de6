// Bounds of the public API that several parts share. A service enforces them. The edge publishes the same values in its OpenAPI
// description and in `GET /models`. Other services accept no larger values.

/** Keys of one account, deleted ones included. auth's `ListKeys` answers all in one message. */
export const maxKeysPerAccount = 1_000;
/**
 * Characters of a model's id that a caller writes. A catalog's ids have 128 at most. Of any other id a refusal repeats no more than
 * this.
 */
export const maxModelIdCharacters = 200;

/** Unicode code points of a prompt, a music description and lyrics, by the API's contract. */
export const maxPromptCharacters = 32_000;
/** Largest seed of a job. Every kind of upstream takes it, so that a seed means the same at a fallback. */
export const maxSeed = 2_147_483_647;
/**
 * Bounds of a job's metadata. Pairs, and code points of their names and values, are those of OpenAI's API. `jsonBytes` bounds all of it
 * as JSON. All pairs at their longest take 9.4 KB in ASCII. In other scripts, or as escapes, they would take up to 55 KB, and each list
 * of jobs and each webhook carries them.
 */
export const metadataLimits = { pairs: 16, name: 64, value: 512, jsonBytes: 12 * 1024 } as const;
/** Images of one job, by the API's contract. */
export const maxImages = 10;
/** Ratios of an image model whose catalog entry lists sizes and no ratios, by the API's contract. Each means its closest size. */
const usualImageRatios: readonly string[] = ["auto", "16:9", "9:16", "3:2", "2:3", "1:1"];

/** The ratios that an image model takes. Without sizes and ratios in its entry it has none. */
export function imageRatios(spec: {
  sizes: readonly string[];
  aspectRatios: readonly string[];
}): readonly string[] {
  return spec.aspectRatios.length > 0 || spec.sizes.length === 0
    ? spec.aspectRatios
    : usualImageRatios;
}

/** Unicode code points of a text that is spoken, by the API's contract. */
export const maxSpeechCharacters = 4_096;
/** Pace of speech, by the API's contract. */
export const speechSpeed = { min: 0.25, max: 4, default: 1 } as const;

/** Modes of a music job. */
export const musicModes = ["instrumental", "lyrics"] as const;

/** The public sizes of videos. Each sets a resolution, and the closest ratio to its own that the model supports. */
export const videoSizes: Readonly<
  Record<string, { resolution: string; width: number; height: number }>
> = {
  "854x480": { resolution: "480p", width: 16, height: 9 },
  "480x854": { resolution: "480p", width: 9, height: 16 },
  "480x480": { resolution: "480p", width: 1, height: 1 },
  "1280x720": { resolution: "720p", width: 16, height: 9 },
  "720x1280": { resolution: "720p", width: 9, height: 16 },
  "720x720": { resolution: "720p", width: 1, height: 1 },
};

/** Characters of a webhook's URL, which is stored with its job and with its webhook. */
export const maxWebhookUrlLength = 2_048;
