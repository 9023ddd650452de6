// Takes an upload from its first message to a stored file: refusals, spooling, verifying, repeats by idempotency key.

import { codePoints } from "#common/words/body.ts";
import { checkIdempotencyKey, refuseAtEdge } from "#common/words/idempotency.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { fingerprintOf } from "#kit/base/fingerprint.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { UploadFileRequest } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Blame, ImageCheck } from "./check.ts";
import type { StorageContext } from "./context.ts";
import type { AccountFile } from "./file.ts";
import { maxImageBytes, maxPurposeLength, uploadShare } from "./limits.ts";
import { readUpload } from "./messages.ts";
import { keptName } from "./names.ts";
import { hasRoom, quotaBytesOf } from "./quota.ts";
import type { Draft, Saver } from "./saver.ts";
import type { Spooled, Spooler } from "./spool.ts";
import type { UploadSlot } from "./store.ts";

/** The parts that uploads need. */
export interface UploadContext extends StorageContext {
  saver: Saver;
  spooler: Spooler;
  check: ImageCheck;
}

/** An answered upload. */
export interface Uploaded {
  file: AccountFile;
  replayed: boolean;
}

/** Receives uploads. */
export interface Uploads {
  /**
   * Reads a header and then chunks, verifies and stores them. Refuses with INVALID_ARGUMENT where the messages break the protocol,
   * INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED, or the edge's own refusal. Refuses with IMAGE_TOO_LARGE, INVALID_IMAGE,
   * UPLOAD_QUOTA_EXCEEDED, RATE_LIMIT_EXCEEDED (too many of the account's at once) or SERVICE_UNAVAILABLE. Where the messages break
   * off, nothing is left.
   */
  upload(
    principal: Principal,
    messages: AsyncIterable<UploadFileRequest>,
    signal: AbortSignal,
  ): Promise<Uploaded>;
  /** Resolves when all work under way has ended. */
  idle(): Promise<void>;
}

const blame: Blame = {
  param: "file",
  invalid: ErrorReason.INVALID_IMAGE,
  tooLarge: ErrorReason.IMAGE_TOO_LARGE,
};

/** An upload whose bytes are on our disk. */
interface Received {
  principal: Principal;
  fileName: string;
  purpose: string;
  spooled: Spooled;
  idempotency: (UploadSlot & { fingerprint: string }) | undefined;
}

/** Makes the uploads. */
export function createUploads(context: UploadContext): Uploads {
  const { store, spooler } = context;
  const share = context.share(uploadShare);
  const running = new Set<Promise<unknown>>();

  const take = async (
    principal: Principal,
    messages: AsyncIterable<UploadFileRequest>,
    signal: AbortSignal,
  ): Promise<Uploaded> => {
    await using upload = await readUpload(messages, signal);
    const { header } = upload;
    const key = checkIdempotencyKey(header.idempotencyKey);
    const slot = key === undefined ? undefined : { keyId: principal.keyId, key };
    const fileName = keptName(header.fileName);
    const purpose = checkPurpose(header.purpose);
    // A request that the edge refused, and that has no record under its key, is not even read.
    if (!slot || !(await store.findBySlot(slot))) refuseAtEdge(header.admission);
    await using spooled = await spooler.take(upload.chunks(), maxImageBytes, tooLarge);
    const { sha256 } = spooled;
    const fingerprint = fingerprintOf({ file_name: fileName, purpose, sha256 });
    const idempotency = slot && { ...slot, fingerprint };
    const received = { principal, fileName, purpose, spooled, idempotency };
    const replay = slot && (await recorded(received, context, signal));
    if (replay) return replay;
    refuseAtEdge(header.admission);
    // Awaited here, because the spooled bytes are removed when this returns.
    return await storeUpload(received, context, signal);
  };

  return {
    async upload(principal, messages, signal) {
      using _turn = await share.take(principal.accountId, signal);
      const work = take(principal, messages, signal);
      running.add(work);
      try {
        return await work;
      } finally {
        running.delete(work);
      }
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

function checkPurpose(purpose: string): string {
  if (purpose === "") refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "purpose" });
  if (codePoints(purpose, maxPurposeLength) > maxPurposeLength || !purpose.isWellFormed()) {
    refuse(ErrorReason.INVALID_VALUE, { param: "purpose" });
  }
  return purpose;
}

function tooLarge(): Error {
  return new RefusalError(ErrorReason.IMAGE_TOO_LARGE, { param: blame.param });
}

/** The record under the upload's key. Waits for a file that is being stored. */
async function recorded(
  { principal, idempotency }: Received,
  { store, saver, events }: UploadContext,
  signal: AbortSignal,
): Promise<Uploaded | undefined> {
  const found = idempotency && (await store.findBySlot(idempotency));
  if (!found) return undefined;
  if (found.fingerprint !== idempotency.fingerprint) refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
  const file = await saver.settled(found.file, signal);
  if (file?.accountId !== principal.accountId) return undefined;
  events.reused("upload");
  return { file, replayed: true };
}

async function storeUpload(
  received: Received,
  context: UploadContext,
  signal: AbortSignal,
): Promise<Uploaded> {
  const { ids, saver, check, quota, quotaBytes } = context;
  const { principal, fileName, purpose, spooled, idempotency } = received;
  const { accountId } = principal;
  const { sizeBytes, sha256 } = spooled;
  // An image that cannot fit is not worth decoding. The final decision is made when its quota is taken.
  if (!hasRoom(await quota.usage(accountId), quotaBytesOf(spooled), quotaBytes)) {
    refuse(ErrorReason.UPLOAD_QUOTA_EXCEEDED, { param: blame.param });
  }
  const { mimeType, width, height } = await check.verify(accountId, spooled.path, blame, signal);
  const draft: Draft = {
    fileId: ids.make("file"),
    accountId,
    origin: "upload",
    fileName,
    purpose,
    mimeType,
    sizeBytes,
    sha256,
    width,
    height,
    ...(idempotency ? { idempotency } : {}),
  };
  for (;;) {
    const saved = await saver.save(draft, spooled.open, blame.param);
    if (saved.kind === "saved") return { file: saved.file, replayed: false };
    // The same key came a moment earlier. If that upload fails, this one goes on.
    const replay = await recorded(received, context, signal);
    if (replay) return replay;
    signal.throwIfAborted();
  }
}
