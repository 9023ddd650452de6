import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  GenerationError,
  type GenerationTask,
  type MediaUpstreams,
  NotTakenError,
} from "../../services/upstreams/media/port.ts";
import { hang, succeed } from "../contract/jobs.upstream.ts";

/** A line of the record of an upstream's requests. */
export interface Asked {
  what: "refuse" | "make" | "create" | "saved" | "resume";
  jobId: string;
  idempotencyKey: string;
}

/** Title of the music that no upstream can make. */
export const impossible = "impossible";

/** Title of the music that never ends. */
export const endless = "endless";

/**
 * The upstream of a process that dies. The folder keeps the record of its requests. Videos are tasks with an id. Everything else is made
 * while the caller waits, and each image is refused once before. With `isStuck` no video ever ends.
 */
export function durableUpstream(
  folder: string,
  { isStuck }: { isStuck: () => boolean },
): MediaUpstreams {
  const log = (what: Asked["what"], { jobId, idempotencyKey }: GenerationTask) => {
    const line: Asked = { what, jobId, idempotencyKey };
    appendFileSync(logFile(folder), `${JSON.stringify(line)}\n`);
  };
  return {
    placeToBegin: (_upstreams, _model, at) => at,
    async generate(task) {
      const { request, resumeId } = task;
      if (resumeId === undefined) await task.sending();
      if (request.kind === "image" && !wasRefused(folder, task)) {
        log("refuse", task);
        throw new NotTakenError("too_many_requests", { isCertain: true, cause: undefined });
      }
      if (request.kind !== "video") log("make", task);
      else if (resumeId !== undefined) log("resume", task);
      else {
        log("create", task);
        await task.saveResumeId(`task_${randomUUID()}`);
        log("saved", task);
      }
      if (request.kind === "video" && isStuck()) return hang(task);
      if (request.kind === "music" && request.title === endless) return hang(task);
      if (request.kind === "music" && request.title === impossible) {
        throw new GenerationError("failed", "scripted");
      }
      return succeed(task);
    },
    cancel: async () => false,
    speak: () => Promise.reject(new GenerationError("failed", "this upstream does not speak")),
  };
}

/** Images are refused once. */
function wasRefused(folder: string, { jobId }: GenerationTask): boolean {
  return readAsked(folder).some((asked) => asked.what === "refuse" && asked.jobId === jobId);
}

/** All requests to the upstream of a folder, in order. */
export function readAsked(folder: string): Asked[] {
  if (!existsSync(logFile(folder))) return [];
  const lines = readFileSync(logFile(folder), "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Asked);
}

function logFile(folder: string): string {
  return join(folder, "upstream.log");
}
