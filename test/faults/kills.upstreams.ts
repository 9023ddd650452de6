import type { Clock } from "#kit/time/clock.ts";
import { JobKind } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { seedOf } from "../../services/upstreams/by-template/values.ts";
import { image, music, video } from "../contract/jobs.world.ts";
import type { Chance } from "../support/chance.ts";
import {
  createdBySeed,
  startComfyDouble,
  startFalDouble,
  startImagesDouble,
} from "./jobs.doubles.ts";
import { gpuModels, imagesModel, writeCatalog } from "./jobs.outside.ts";
import { impossible } from "./jobs.upstream.ts";
import type { Submission } from "./kills.child.ts";

/** The upstreams of a soak. Their doubles know the generations that an operator pays for. */
export interface SoakUpstreams extends AsyncDisposable {
  /** Writes the catalog of the soak's processes into a folder, and gives its file. */
  writeCatalog(folder: string): Promise<string>;
  /** Sets the clock of the doubles, until the signal aborts. */
  follow(clock: Clock, signal: AbortSignal): void;
  /** A submission with a key of its own. */
  submissionOf(key: string, chance: Chance): Submission;
  /** The generations that were begun, by the submission's key. Those for no job have the key "". `jobIds`: the id of each key's job. */
  begun(jobIds: ReadonlyMap<string, string>): Map<string, string[]>;
  /** The keys of the tasks that the services charge, one for each task. Undefined: they charge for all that was begun. */
  paid: (() => string[]) | undefined;
}

/** Jobs that one process may have at one upstream at once. */
export const maxConcurrent = 8;

/** A real image of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** The reference of a video. */
export const input_reference = { image_url: `data:image/png;base64,${pixel}` };

/** Makes one of the submissions by chance, each as often as its percentage says. */
export function oneOf(
  kinds: readonly (readonly [percent: number, kind: JobKind, body: Submission["body"]])[],
  key: string,
  chance: Chance,
): Submission {
  let roll = chance.int(100);
  for (const [percent, kind, body] of kinds) {
    if (roll < percent) return { key, kind, body };
    roll -= percent;
  }
  throw new RangeError("the kinds do not come to 100 percent");
}

/** fal, ComfyUI, and a server with OpenAI's images. */
export async function startUsualUpstreams(): Promise<SoakUpstreams> {
  await using stack = new AsyncDisposableStack();
  const fal = stack.use(await startFalDouble());
  const comfyui = stack.use(await startComfyDouble());
  const images = stack.use(await startImagesDouble({ takesMs: 3_000 }));
  const owned = stack.move();
  return {
    writeCatalog: (folder) =>
      writeCatalog(folder, {
        ...{ fal: [fal.origin], comfyui: [comfyui.origin], images: [images.baseUrl] },
        maxConcurrent,
      }),
    follow: (clock) => images.follow(clock),
    submissionOf(key, chance) {
      const n = 1 + chance.int(2);
      return oneOf(
        [
          [20, JobKind.IMAGE, image({ model: imagesModel, n, prompt: key })],
          [20, JobKind.IMAGE, image({ n })],
          [20, JobKind.IMAGE, image({ model: gpuModels.image, n })],
          [10, JobKind.VIDEO, video({ input_reference })],
          [10, JobKind.VIDEO, video({ model: gpuModels.video, input_reference })],
          [8, JobKind.MUSIC, music()],
          [8, JobKind.MUSIC, music({ model: gpuModels.music })],
          [2, JobKind.MUSIC, music({ title: impossible })],
          [2, JobKind.MUSIC, music({ title: impossible, model: gpuModels.music })],
        ],
        key,
        chance,
      );
    },
    begun(jobIds) {
      const created = createdBySeed({ fal: [fal], comfyui: [comfyui] });
      const drawn = Map.groupBy(images.prompts, (prompt) => prompt);
      const begun = new Map<string, string[]>();
      for (const [key, jobId] of jobIds) {
        const seed = seedOf(jobId);
        begun.set(key, drawn.get(key) ?? created.get(seed) ?? []);
        created.delete(seed);
      }
      return begun.set("", [...created.values()].flat());
    },
    paid: undefined,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
