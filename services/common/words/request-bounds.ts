// Bounds of the public API that several parts of the house go by: a service enforces them, the edge publishes the same values
// in its OpenAPI description and in `GET /models`, and other services take no more of what they are asked.

/** Keys of one account, revoked ones included: auth's `ListKeys` answers all in one message. */
export const maxKeysPerAccount = 1_000;
/** Characters of a model's id that a caller writes: a catalog's have 128 at most, and a refusal echoes no more than this of another. */
export const maxModelIdCharacters = 200;

/** Characters of a prompt, a music description and lyrics, Unicode code points (the contract's). */
export const maxPromptCharacters = 32_000;
/** Largest seed of a job: what every kind of upstream takes, so that a seed means the same at a fallback. */
export const maxSeed = 2_147_483_647;
/**
 * Metadata of a job: pairs, and characters (code points) of their names and values, as OpenAI's API has them; and bytes of all of it
 * as JSON. All pairs at their longest in ASCII take 9.4 KB; in other scripts, or as escapes, they would take up to 55 KB, and each
 * list of jobs and each webhook carries them.
 */
export const metadataLimits = { pairs: 16, name: 64, value: 512, jsonBytes: 12 * 1024 } as const;
/** Images of one job (the contract's). */
export const maxImages = 10;
/** Ratios that an image model takes whose catalog entry lists sizes and no ratios (the contract's); each stands for its closest size. */
const usualImageRatios: readonly string[] = ["auto", "16:9", "9:16", "3:2", "2:3", "1:1"];

/** The ratios that an image model takes; an entry without sizes has nothing that others could stand for. */
export function imageRatios(spec: {
  sizes: readonly string[];
  aspectRatios: readonly string[];
}): readonly string[] {
  return spec.aspectRatios.length > 0 || spec.sizes.length === 0
    ? spec.aspectRatios
    : usualImageRatios;
}

/** Characters of a text that is spoken, Unicode code points (the contract's). */
export const maxSpeechCharacters = 4_096;
/** Pace of speech (the contract's). */
export const speechSpeed = { min: 0.25, max: 4, default: 1 } as const;

/** What a music job makes. */
export const musicModes = ["instrumental", "lyrics"] as const;

/** The public sizes of videos; each sets a resolution, and the closest ratio to its own that the model supports. */
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

/** Characters of a webhook's URL: it is written down with its job, and with its webhook. */
export const maxWebhookUrlLength = 2_048;
