import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { JobKind } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { image, video } from "../contract/jobs.world.ts";
import { startDeclaredService, type Task } from "../support/upstreams/declared.ts";
import { upstreamKey } from "./jobs.drivers.ts";
import { impossible } from "./jobs.upstream.ts";
import { input_reference, maxConcurrent, oneOf, type SoakUpstreams } from "./kills.upstreams.ts";

/**
 * Four upstreams, each with its shipped catalog. xAI has plain tasks, and Kling signed keys. Hailuo has integer ids, and a file that is
 * asked for. BFL makes images, and has a host of its own for looks.
 */
const services = { xai: "xai", kling: "kling", hailuo: "minimax", bfl: "bfl" } as const;
type Name = keyof typeof services;

/** Their models by upstream. */
const models = {
  ...{ xai: "svc-video-1-5", kling: "kling-3", hailuo: "hailuo-2-3", bfl: "image-1" },
} as const satisfies Record<Name, string>;

/** Milliseconds, by the soak's clock, in which each task comes into its next state. */
const stateMs = 2_000;

/** The key of the submission that a task is for. Every prompt has it. */
function keyOf({ input }: Task): string {
  return /job-\d+/.exec(JSON.stringify(input))?.[0] ?? "";
}

/** Starts a double of each. A task ends by the soak's clock, whether it is looked at or not. It is refused where its prompt says so. */
export async function startDeclaredUpstreams(): Promise<SoakUpstreams> {
  await using stack = new AsyncDisposableStack();
  let clock: Clock = systemClock;
  const started = await Promise.all(
    (Object.keys(services) as Name[]).map((name) =>
      startDeclaredService(name, {
        ...{ key: upstreamKey, now: () => clock.now() },
        planOf: (input) => ({
          pace: "held",
          end: JSON.stringify(input).includes(impossible) ? "refused" : "done",
        }),
      }),
    ),
  );
  for (const service of started) stack.use(service);
  const owned = stack.move();
  return {
    async writeCatalog(folder) {
      const upstreams: Record<string, object> = {};
      const made: object[] = [];
      for (const { name, baseUrl, cluster } of started) {
        const file = `../../deploy/catalogs/${services[name as Name]}.yaml`;
        const shipped = parse(await readFile(new URL(file, import.meta.url), "utf8"));
        const upstream = shipped.upstreams[name];
        if (cluster) upstream.jobs.origins = [cluster.origin];
        upstreams[name] = { ...upstream, baseUrl, maxConcurrent };
        const isOurs = ({ id }: { id: string }) => id === models[name as Name];
        const { default: _, ...model } = shipped.models.find(isOurs);
        made.push(model);
      }
      const path = join(folder, "catalog.yaml");
      await writeFile(path, JSON.stringify({ upstreams, models: made }));
      return path;
    },
    follow(next, signal) {
      clock = next;
      const pass = async () => {
        for (;;) {
          await clock.sleep(stateMs, signal);
          for (const service of started) service.advance();
        }
      };
      pass().catch((error) => {
        if (!signal.aborted) throw error;
      });
    },
    submissionOf(key, chance) {
      const prompt = chance.likely(8) ? `${key} ${impossible}` : key;
      const film = (model: string, more: object) => video({ model, prompt, ...more });
      return oneOf(
        [
          [20, JobKind.VIDEO, film(models.xai, {})],
          [10, JobKind.VIDEO, film(models.xai, { input_reference })],
          [20, JobKind.VIDEO, film(models.kling, { seconds: 5, resolution: "720p" })],
          [20, JobKind.VIDEO, film(models.hailuo, { resolution: "768p" })],
          [30, JobKind.IMAGE, image({ model: models.bfl, prompt })],
        ],
        key,
        chance,
      );
    },
    begun(jobIds) {
      const begun = new Map<string, string[]>();
      for (const { name, tasks } of started) {
        for (const task of tasks) {
          const key = jobIds.has(keyOf(task)) ? keyOf(task) : "";
          begun.set(key, [...(begun.get(key) ?? []), `${task.state} at ${name}`]);
        }
      }
      return begun;
    },
    paid: () => started.flatMap((service) => service.paid().map(keyOf)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
