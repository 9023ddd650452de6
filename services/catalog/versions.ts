// Answers the methods by which operators read texts of the catalog, list versions and put one in force. They refuse changes where
// a file is the master.

import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { codePoints } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type {
  CatalogService,
  PutInForceRequest,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DraftChecker } from "./draft/index.ts";
import {
  maxActorChars,
  maxNoteChars,
  maxOperationIdChars,
  maxVersionBytes,
  versionPages,
} from "./limits.ts";
import type { CatalogText, SnapshotSource } from "./source.ts";
import type { StoredKeys } from "./stored-keys.ts";
import {
  type CatalogVersion,
  fileNumber,
  type VersionFacts,
  type VersionStore,
} from "./version.ts";

/** The parts that the methods need. */
export interface VersionRoutesDeps {
  /** Path of the catalog file. Workflow files lie beside it. */
  file: string;
  source: Pick<SnapshotSource, "current" | "inForce">;
  /** Undefined: a file is the master. */
  versions: VersionStore | undefined;
  keys: StoredKeys | undefined;
  drafts: Pick<DraftChecker, "check">;
  clock: Clock;
  /** Looks at the store now. */
  look(): Promise<void>;
  /** The newest version in the store, which is in force here by then. Undefined: there is none. */
  caughtUp(): Promise<VersionFacts | undefined>;
}

/** The methods that change what is in force. */
type VersionMethods = Pick<
  ServiceImpl<typeof CatalogService>,
  "getText" | "listVersions" | "putInForce"
>;

/** Makes the methods. */
export function versionRoutes(deps: VersionRoutesDeps): VersionMethods {
  const { source, versions } = deps;
  return {
    async getText({ number: wanted }) {
      const newest = await deps.caughtUp();
      const found = await textOf(deps, wanted);
      const told = {
        isEditable: versions !== undefined,
        newestNumber: newest?.number ?? fileNumber,
      };
      const { text, version } = found ?? refuse(ErrorReason.OBJECT_NOT_FOUND);
      return { yaml: text, ...told, ...(version ? { version: versionMessage(version) } : {}) };
    },
    async listVersions({ pageSize, pageToken }) {
      const size = readPageSize(pageSize);
      const below = readToken(pageToken);
      const found = (await versions?.list({ below, limit: size + 1 })) ?? [];
      const last = found.length > size ? found[size - 1] : undefined;
      return {
        versions: found.slice(0, size).map(versionMessage),
        nextPageToken: last ? String(last.number) : "",
      };
    },
    async putInForce(request, { signal }) {
      const { expectedNumber, operationId } = readPut(request);
      const store = versions ?? refuse(ErrorReason.STATE_CONFLICT, { message: fileIsMaster });
      const made = await store.madeBy(operationId);
      if (made) return await repeated(store, request, made);
      const newest = (await deps.caughtUp())?.number ?? fileNumber;
      if (newest !== expectedNumber) refuse(ErrorReason.STATE_CONFLICT, { message: changedSince });
      const { models, faults, draft } = await judged(deps, store, request, signal);
      if (faults.length > 0) return { faults };
      const said = { note: request.note, actor: request.actor, operationId };
      if (newest === fileNumber) {
        const { number: _, ...text } = source.inForce();
        const models = source.current().models.length;
        const own = { number: fileNumber, models, actor: "", note: "", operationId: "file" };
        // Another operator may have kept it already.
        await store.add(versionOf(text, own, deps.clock));
      }
      const version = versionOf(draft, { ...said, models, number: newest + 1 }, deps.clock);
      if (!(await store.add(version))) {
        const own = await store.madeBy(operationId);
        if (own) return await repeated(store, request, own);
        refuse(ErrorReason.STATE_CONFLICT, { message: changedSince });
      }
      await deps.look();
      return { version: versionMessage(version) };
    },
  };
}

const fileIsMaster =
  "A file is the master of this catalog. Change the file, or set GENMESH_CATALOG to store: and its path.";
const changedSince =
  "Another version of the catalog has come into force since this one was opened. Load the page again.";
const tooLarge = `the text and its workflow files have more than ${maxVersionBytes} bytes`;

/** A text with its version, where it is one. The text in force where no number is wanted. */
async function textOf(
  { source, versions }: VersionRoutesDeps,
  wanted: number | undefined,
): Promise<{ text: string; version: VersionFacts | undefined } | undefined> {
  const { text, number } = source.inForce();
  if (wanted === undefined && number === undefined) return { text, version: undefined };
  const version = await versions?.find(wanted ?? number ?? fileNumber);
  return version && { text: version.text, version };
}

/** The first answer to a repeat. Refuses with OPERATION_MISMATCH where it is another act of the same name. */
async function repeated(
  store: VersionStore,
  { text, note, actor }: PutInForceRequest,
  made: VersionFacts,
) {
  const sha256 =
    text.case === "number" ? (await store.find(text.value))?.sha256 : sha256Of(text.value ?? "");
  const isSame = made.sha256 === sha256 && made.note === note && made.actor === actor;
  if (!isSame) refuse(ErrorReason.OPERATION_MISMATCH);
  return { version: versionMessage(made), replayed: true };
}

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The draft of a request, judged. */
async function judged(
  { drafts, source, file, clock, keys }: VersionRoutesDeps,
  store: VersionStore,
  { text }: PutInForceRequest,
  signal: AbortSignal,
) {
  const inForce = source.inForce();
  const job =
    text.case === "number"
      ? { draft: (await store.find(text.value)) ?? invalid("number"), inForce }
      : {
          draft: { text: text.value ?? "", workflows: inForce.workflows },
          folder: dirname(file),
          onlyKnownKeyFiles: true,
          inForce,
        };
  const { models, faults, workflows } = await drafts.check(
    { ...job, storedKeys: keys?.names(), nowMs: clock.now() },
    signal,
  );
  const draft: CatalogText = { text: job.draft.text, workflows };
  const isTooLarge = bytesOf(draft) > maxVersionBytes;
  return { models, draft, faults: isTooLarge ? [{ path: "", message: tooLarge }] : faults };
}

function bytesOf({ text, workflows }: CatalogText): number {
  return [text, ...[...workflows.values()].map((file) => file.text ?? "")].reduce(
    (sum, one) => sum + Buffer.byteLength(one),
    0,
  );
}

function versionOf(
  { text, workflows }: CatalogText,
  facts: Omit<VersionFacts, "madeAtMs" | "sha256">,
  clock: Clock,
): CatalogVersion {
  return { ...facts, text, workflows, madeAtMs: clock.now(), sha256: sha256Of(text) };
}

function versionMessage({ number, actor, note, madeAtMs, sha256, models }: VersionFacts) {
  return { number, actor, note, madeTime: timestampFromMs(madeAtMs), sha256, models };
}

function readPut(request: PutInForceRequest): PutInForceRequest {
  const { text, expectedNumber, note, actor, operationId } = request;
  if (text.case === undefined) invalid("text");
  if (expectedNumber < fileNumber) invalid("expected_number");
  if (codePoints(note, maxNoteChars) > maxNoteChars) invalid("note");
  if (actor === "" || actor.length > maxActorChars) invalid("actor");
  // "file" names the version of the file.
  const isNamed = operationId !== "" && operationId !== "file";
  if (!isNamed || operationId.length > maxOperationIdChars) invalid("operation_id");
  return request;
}

function readPageSize(size: number): number {
  if (size < 0 || size > versionPages.most) invalid("page_size");
  return size === 0 ? versionPages.default : size;
}

/** Versions below this number follow. */
function readToken(token: string): number {
  if (token === "") return Number.MAX_SAFE_INTEGER;
  return /^\d{1,9}$/.test(token) ? Number(token) : invalid("page_token");
}

function invalid(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
