// Waits for an image job, and answers like OpenAI's image route: with URLs, or with the images in base64.

import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { unixSeconds } from "#common/documents/answer-values.ts";
import { isTerminal } from "#common/documents/job-document.ts";
import {
  ErrorReason,
  errorRow,
  isRefusal,
  knownReason,
  RefusalError,
  refuse,
} from "#kit/base/errors.ts";
import {
  FileArea,
  ImageAnswer,
  type Job,
  JobStatus,
  type LocateFileResponse,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "./context.ts";
import { openBlob } from "./files.ts";
import { followJob } from "./follow-job.ts";
import { deadlinesMs, imageWaitMs } from "./limits.ts";
import { callOptions, sendStream } from "./request.ts";
import { arrayOf, idempotencyHeader, integer, object, type Schema, string } from "./schemas.ts";

/** The wait that a `Prefer: wait` asks for, in ms, at most as long as an answer may take. Undefined: there is none. */
export function preferredWaitMs(header: string | string[] | undefined): number | undefined {
  for (const preference of [header ?? []].flat().join(",").split(",")) {
    const found = /^\s*wait\s*(?:=\s*"?(\d{1,9})"?\s*)?(?:;.*)?$/i.exec(preference);
    if (found) return Math.min(Number(found[1] ?? imageWaitMs) * 1_000, imageWaitMs);
  }
  return undefined;
}

/** A job that a caller waits for. */
export interface AwaitedJob {
  job: Job;
  answer: ImageAnswer;
  /** Time at which its caller has waited long enough, by the steady clock. */
  untilMs: number;
  /** Base URL of answers. Ends in `/v1`. */
  baseUrl: string;
}

/**
 * Answers an image job like OpenAI's route, once it has ended. Nothing is sent before, so that an error has its status. Every refusal
 * names the job, and makes SDKs not repeat the request by themselves. It is JOB_NOT_FINISHED where the job takes too long, and the
 * job's own error where it has failed.
 */
export async function answerWithImages(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  awaited: AwaitedJob,
): Promise<FastifyReply> {
  const { jobId } = awaited.job;
  const statusUrl = `${awaited.baseUrl}/images/generations/${jobId}`;
  try {
    const job = await untilEnded(edge, request, reply, awaited);
    if (!job) refuse(ErrorReason.JOB_NOT_FINISHED);
    if (job.status === JobStatus.FAILED) throw failureOf(job);
    reply.header("preference-applied", "wait");
    if (awaited.answer === ImageAnswer.URL) {
      const data = job.outputs.map(({ fileId }) => ({ url: `${statusUrl}/files/${fileId}` }));
      return await reply.send({ ...headOf(job), data });
    }
    return await sendInline(edge, request, reply, job);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const metadata = { ...error.metadata, job_id: jobId, status_url: statusUrl };
    const { message, param } = error;
    throw new RefusalError(error.reason, {
      message,
      metadata,
      cause: error,
      ...(param === undefined ? {} : { param }),
    });
  }
}

/** The job once it has ended. Undefined where that takes too long. */
async function untilEnded(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  { job, untilMs }: AwaitedJob,
): Promise<Job | undefined> {
  if (isTerminal(job)) return job;
  const { clock } = edge;
  const options = callOptions(request, reply, deadlinesMs.watch, edge.cutOff);
  const over = new AbortController();
  const late = new AbortController();
  clock.sleep(Math.max(0, untilMs - clock.steady()), over.signal).then(
    () => late.abort("late"),
    () => {},
  );
  const signal = AbortSignal.any([options.signal, late.signal]);
  let last: Job | undefined;
  try {
    for await (const seen of followJob(edge, { jobId: job.jobId }, { ...options, signal })) {
      last = seen ?? last;
    }
  } catch (error) {
    if (options.signal.aborted) throw options.signal.reason;
    if (late.signal.aborted) return undefined;
    throw error;
  } finally {
    over.abort("over");
  }
  return last && isTerminal(last) ? last : undefined;
}

/** The error for a caller that has waited for a job that failed. */
function failureOf({ error }: Job): RefusalError {
  const reason = (error && knownReason(error.reason)) ?? ErrorReason.GENERATION_FAILED;
  const row = errorRow(reason);
  return new RefusalError(row.audience === "public" ? reason : ErrorReason.MODEL_REQUEST_FAILED, {
    message: error?.message || row.message,
    ...(error?.param && { param: error.param }),
  });
}

function headOf(job: Job) {
  const [first] = job.outputs;
  return {
    created: unixSeconds(job.completeTime),
    id: job.jobId,
    creditsCharged: Number(job.creditsCharged ?? 0n),
    ...(first ? { output_format: first.mimeType.replace("image/", "") } : {}),
    ...(job.size === "" ? {} : { size: job.size }),
  };
}

/** The images in base64. They are read from the store while they are sent. */
async function sendInline(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  job: Job,
): Promise<FastifyReply> {
  const files: LocateFileResponse[] = [];
  for (const { fileId } of job.outputs) {
    const name = { area: FileArea.IMAGES, parentId: job.jobId, fileId };
    files.push(
      await edge.peers.media.locateFile(name, callOptions(request, reply, deadlinesMs.quick)),
    );
  }
  await edge.downloads.take(request, reply);
  const head = `${JSON.stringify(headOf(job)).slice(0, -1)},"data":[`;
  const [before, between, after] = ['{"b64_json":"', '"},', '"}]}'];
  const lengths = files.map(({ sizeBytes }) => 4 * Math.ceil(Number(sizeBytes) / 3));
  const frame = before.length * files.length + between.length * (files.length - 1) + after.length;
  const pieces = async function* () {
    yield head;
    for (const [index, file] of files.entries()) {
      yield index === 0 ? before : between + before;
      yield* inBase64(await openBlob(edge, file.blobKey, undefined));
    }
    yield after;
  };
  reply.headers({
    "content-type": "application/json; charset=utf-8",
    "content-length": lengths.reduce((sum, one) => sum + one, head.length + frame),
  });
  return sendStream(edge, reply, Readable.from(pieces(), { objectMode: false }));
}

/** Bytes in base64, from chunks with any borders. */
async function* inBase64(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % 3);
    if (whole > 0) yield bytes.toString("base64", 0, whole);
    rest = bytes.subarray(whole);
  }
  if (rest.length > 0) yield rest.toString("base64");
}

/** OpenAI's answer. */
export const imagesAnswer: Schema = object(
  {
    created: integer("Unix seconds."),
    id: string("The job that made them."),
    creditsCharged: integer("What it cost."),
    output_format: string("`png`, `jpeg` or `webp`."),
    size: string("Where one was sent."),
    data: arrayOf(
      object({
        b64_json: string("The image in base64."),
        url: string("With `response_format: url`: fetched with the same key.", { format: "uri" }),
      }),
      "The images.",
    ),
  },
  ["created", "data"],
);

/** Headers of a call that may wait for its images. */
export const preferHeaders: Schema = object({
  ...(idempotencyHeader.properties as Record<string, Schema>),
  Prefer: string(
    "`wait`, or `wait=60` for at most so many seconds (RFC 7240): the answer waits for the images.",
  ),
});
