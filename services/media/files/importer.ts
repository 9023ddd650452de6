// Brings the references of a job into its account's storage: finds uploads and outputs, and fetches URLs. `jobs/drive.ts` calls
// it before a job is accepted.

import { createHash } from "node:crypto";
import { ErrorReason, refuse, unavailable } from "#kit/base/errors.ts";
import { isDataUri, isTooLong, readImageUri } from "#kit/images/index.ts";
import { type GuardedFetcher, OutsideError } from "#kit/outside/index.ts";
import type { FairShare } from "#kit/share/fair-share.ts";
import { importShare, maxImportTurns } from "../limits.ts";
import type {
  FileReference,
  PinnedReference,
  ReferenceImporter,
  ReferenceInput,
} from "../references/port.ts";
import type { Blame, ImageCheck } from "./check.ts";
import type { GeneratedFiles, StorageContext } from "./context.ts";
import { type AccountFile, blobKeyOf } from "./file.ts";
import { maxImageBytes } from "./limits.ts";
import { checkMask } from "./mask.ts";
import { suffixOf } from "./names.ts";
import type { Draft, Saver } from "./saver.ts";
import type { JobPin } from "./store.ts";

/** The purpose of imports in lists. */
const importPurpose = "reference";

/** The parts that importing needs. */
interface ImporterContext extends StorageContext {
  generated: Pick<GeneratedFiles, "lend">;
  saver: Saver;
  check: ImageCheck;
  fetcher: GuardedFetcher;
}

/** A job whose references are to be imported. */
interface Job {
  accountId: string;
  jobId: string;
  /** Outputs belong to one key. */
  keyId: string;
}

type UrlReference = Extract<ReferenceInput, { kind: "url" }>;

/** Makes an importer into the account files. */
export function createReferenceImporter(context: ImporterContext): ReferenceImporter {
  const { clock, store } = context;
  const share = context.share(importShare);
  return {
    async importAll(job, references, signal) {
      for (const reference of references) {
        if (reference.kind === "url") checkReferenceUrl(reference.url, reference.param);
      }
      const known = await store.pinned(job.jobId);
      const stop = new AbortController();
      const either = AbortSignal.any([signal, stop.signal]);
      const work = references.map(async (reference, index) => {
        try {
          const pinned = known.get(index);
          if (pinned) return toReference(pinned);
          return await take(job, index, reference, either, share, context);
        } catch (error) {
          stop.abort(error);
          throw error;
        }
      });
      // All have ended before the job unpins anything.
      const ends = await Promise.allSettled(work);
      if (stop.signal.aborted) throw stop.signal.reason;
      const pinned = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
      await checkMask(references, pinned, context.blobs);
      return pinned;
    },
    unpin: ({ jobId }) => store.unpin(jobId, clock.now()),
  };
}

function toReference(file: AccountFile): PinnedReference {
  const { fileId, mimeType, sizeBytes, width, height } = file;
  return { fileId, blobKey: blobKeyOf(file), mimeType, sizeBytes, width, height };
}

async function take(
  job: Job,
  index: number,
  reference: ReferenceInput,
  signal: AbortSignal,
  share: FairShare,
  context: ImporterContext,
): Promise<PinnedReference> {
  const pin: JobPin = { jobId: job.jobId, index };
  if (reference.kind === "file") return takeFile(job, pin, reference, context);
  const fileId = importIdOf(pin);
  const imported = await context.store.pin(job.accountId, fileId, pin);
  if (imported) return toReference(imported);
  using _turn = await share.take(job.accountId, signal);
  return toReference(await importOne(job, fileId, pin, reference, signal, context));
}

async function takeFile(
  { accountId, keyId }: Job,
  pin: JobPin,
  { fileId, jobId, param }: FileReference,
  { store, generated }: ImporterContext,
): Promise<PinnedReference> {
  const file = jobId === undefined ? await store.pin(accountId, fileId, pin) : undefined;
  if (file) return toReference(file);
  const output = await generated.lend({ fileId, jobId, keyId });
  if (!output) refuse(ErrorReason.REFERENCE_NOT_FOUND, { param });
  const isImage = output.mimeType.startsWith("image/") && output.sizeBytes <= maxImageBytes;
  return isImage
    ? output
    : refuse(ErrorReason.INVALID_REFERENCE_IMAGE, {
        param,
        message: "The output must be an image of at most 20 MiB.",
      });
}

async function importOne(
  { accountId }: Job,
  fileId: string,
  pin: JobPin,
  { url, param }: UrlReference,
  signal: AbortSignal,
  context: ImporterContext,
): Promise<AccountFile> {
  const { store, saver, check } = context;
  const bytes = await takeBytes(url, param, context.fetcher, signal);
  const blame: Blame = {
    param,
    invalid: ErrorReason.INVALID_REFERENCE_IMAGE,
    tooLarge: ErrorReason.INVALID_REFERENCE_IMAGE,
  };
  const { mimeType, width, height } = await check.verify(accountId, bytes, blame, signal);
  const draft: Draft = {
    fileId,
    accountId,
    origin: "import",
    fileName: `reference.${suffixOf(mimeType)}`,
    purpose: importPurpose,
    mimeType,
    sizeBytes: bytes.byteLength,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    width,
    height,
    pin,
  };
  for (let turn = 0; turn < maxImportTurns; turn++) {
    signal.throwIfAborted();
    const saved = await saver.save(draft, () => once(bytes), param);
    if (saved.kind === "saved") return saved.file;
    // The account has these bytes, or will have in a moment. They are used, and counted, once.
    const there = await saver.settled(saved.file, signal);
    const pinned = there && (await store.pin(accountId, there.fileId, pin));
    if (pinned) return pinned;
  }
  throw unavailable();
}

/** The id of a job's import, the same for every attempt at it. 24 characters of [a-z0-9] carry 124 bits. */
function importIdOf({ jobId, index }: JobPin): string {
  const digest = createHash("sha256").update(`${jobId}\n${index}`).digest();
  const number = BigInt(`0x${digest.subarray(0, 20).toString("hex")}`);
  return `file_${number.toString(36).padStart(31, "0").slice(-24)}`;
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

/**
 * The bytes at a reference's URL: a base64 image data URI, or a public address that is fetched. A URL of another kind is refused with
 * INVALID_INPUT_REFERENCE. One that leads to an address that is not public is refused with UNSAFE_REFERENCE_URL. One without an image
 * of up to 20 MiB is refused with INVALID_REFERENCE_IMAGE. Rejects with the signal's reason.
 */
async function takeBytes(
  url: string,
  param: string,
  fetcher: Pick<GuardedFetcher, "fetchBytes">,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (isDataUri(url)) return decode(url, param);
  try {
    const accept = "image/jpeg, image/png, image/webp";
    return (await fetcher.fetchBytes(url, { maxBytes: maxImageBytes, accept, signal })).bytes;
  } catch (error) {
    if (!(error instanceof OutsideError)) throw error;
    throw refusalOf(error, param);
  }
}

/** Refuses a URL that no reference may have with INVALID_INPUT_REFERENCE, before any work for the others. */
function checkReferenceUrl(url: string, param: string): void {
  if (isDataUri(url) || /^https?:\/\//i.test(url)) return;
  refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
    param,
    message: "An image_url must be a public http or https URL, or a base64 image data URI.",
  });
}

async function decode(uri: string, param: string): Promise<Uint8Array> {
  if (isTooLong(uri, maxImageBytes)) tooLarge(param);
  const read = await readImageUri(uri);
  const bytes =
    read?.bytes ??
    refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
      param,
      message: "The data URI must have the form data:image/…;base64,….",
    });
  return bytes.length > maxImageBytes ? tooLarge(param) : bytes;
}

function tooLarge(param: string): never {
  refuse(ErrorReason.INVALID_REFERENCE_IMAGE, {
    param,
    message: "An image may have at most 20 MiB.",
  });
}

/** Always throws. The error holds nothing of the host's answer. */
function refusalOf(error: OutsideError, param: string): never {
  switch (error.kind) {
    case "invalid_url":
      return refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
        param,
        message:
          "An image_url must be an absolute http or https URL without user name and password.",
        cause: error,
      });
    case "unsafe":
      return refuse(ErrorReason.UNSAFE_REFERENCE_URL, { param, cause: error });
    case "too_large":
      return tooLarge(param);
    case "unreachable":
    case "timeout":
    case "bad_status":
      return refuse(ErrorReason.INVALID_REFERENCE_IMAGE, {
        param,
        message: "The image could not be fetched from its URL.",
        cause: error,
      });
  }
}
