// Runs in a thread: judges a draft of the catalog, and lists how it differs from what is in force. `index.ts` sends the drafts.

import { isAbsolute } from "node:path";
import { type DescMessage, type Message, toJson } from "@bufbuild/protobuf";
import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import {
  ContentCredentialsSchema,
  DraftChange_Kind,
  ModelSchema,
  type Snapshot,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type WorkflowFiles, workflowsIn } from "../file.ts";
import { maxDraftChangeCharacters } from "../limits.ts";
import { parseCatalog } from "../parse.ts";
import type { CatalogText } from "../source.ts";
import { storedKeyFaults } from "../stored-key.ts";

/** The change that a draft would make to a model or an upstream. */
interface Change {
  subject: string;
  kind: DraftChange_Kind;
  fields: { path: string; before: string; after: string }[];
}

/** Fields whose values are never shown. They are only compared. */
const hidden: ReadonlySet<string> = new Set(["developerPrompt"]);

/** The verdict on a draft. */
export interface DraftVerdict {
  /** Number of models. 0 where the draft has faults. */
  models: number;
  faults: { path: string; message: string }[];
  /** Changes against the file in force. Empty where the draft has faults. */
  changes: Change[];
  /** Do more fields differ than are listed? */
  isShortened: boolean;
}

/** A draft, and the catalog that is in force. */
export interface DraftJob {
  draft: CatalogText;
  /** The folder of workflow files. One that is not there is taken from the draft. Absent: all are the draft's own. */
  folder?: string;
  /** Is a file that holds a key a fault where what is in force does not name it? Default: it is not. */
  onlyKnownKeyFiles?: boolean;
  /** The names of stored keys. Absent: none can be stored. */
  storedKeys?: readonly string[] | undefined;
  inForce: CatalogText;
  /** Milliseconds since the epoch. */
  nowMs: number;
}

/** A verdict, and the workflow files that it is about. */
export type JudgedDraft = DraftVerdict & { workflows: WorkflowFiles };

/** A draft that cannot be judged. */
export function faultyDraft(message: string): JudgedDraft {
  const faults = [{ path: "", message }];
  return { models: 0, faults, changes: [], isShortened: false, workflows: new Map() };
}

/** Judges a draft in a thread. */
export async function inThread(job: DraftJob): Promise<JudgedDraft> {
  const { draft, folder } = job;
  const workflows = folder === undefined ? draft.workflows : await found(draft, folder);
  const verdict = checkDraft({ ...job, draft: { ...draft, workflows } });
  return { ...verdict, workflows };
}

/** The workflow files that a draft names. */
async function found({ text, workflows }: CatalogText, folder: string): Promise<WorkflowFiles> {
  const files = await workflowsIn(folder, text);
  for (const [name, { fault }] of files) {
    const kept = workflows.get(name);
    if (fault !== undefined && kept !== undefined) files.set(name, kept);
  }
  return files;
}

/** Judges a draft at a time, and compares it with what is in force. */
export function checkDraft(job: Omit<DraftJob, "folder">): DraftVerdict {
  const { draft, inForce, nowMs, onlyKnownKeyFiles = false, storedKeys } = job;
  const { snapshot: is, faults } = parseCatalog(draft.text, draft.workflows, nowMs);
  if (faults) return refusedDraft(faults);
  const { snapshot: was } = parseCatalog(inForce.text, inForce.workflows);
  if (!was) throw new Error("what is in force has faults");
  const unknown = [
    ...(onlyKnownKeyFiles ? unknownKeyFiles(is, was) : []),
    ...storedKeyFaults(is, storedKeys),
  ];
  if (unknown.length > 0) return refusedDraft(unknown);
  const changes = [
    ...changesOf(byId(was), byId(is), (id) => id),
    ...changesOf(upstreamsOf(was), upstreamsOf(is), (name) => `upstream ${name}`),
    ...(was.developerPrompt === is.developerPrompt
      ? []
      : [changed("catalog", [{ path: "developerPrompt", before: "", after: "" }])]),
    ...changesOf(credentialsOf(was), credentialsOf(is), () => "catalog"),
  ];
  return { models: is.models.length, faults: [], ...shortened(changes) };
}

function refusedDraft(faults: readonly { path: string; message: string }[]): DraftVerdict {
  const told = faults.map(({ path, message }) => ({ path, message }));
  return { models: 0, faults: told, changes: [], isShortened: false };
}

/**
 * Upstreams, and a certificate, whose key is in a file that the catalog in force does not name for such a use. With a path of their choice,
 * an operator could send any file of the machine to an upstream, and sign by any key of the machine.
 */
function unknownKeyFiles(is: Snapshot, was: Snapshot): DraftVerdict["faults"] {
  const known = new Set(Object.values(was.upstreams).map(({ apiKeyFile }) => apiKeyFile));
  const message = "names a file that what is in force does not; name it in the catalog file first";
  const ofUpstreams = Object.values(is.upstreams)
    .filter(({ apiKeyFile }) => apiKeyFile !== "" && !known.has(apiKeyFile))
    .map(({ name }) => ({ path: `upstreams.${name}.apiKeyFile`, message }));
  const keyName = is.contentCredentials?.keyName ?? "";
  const isKnown = !isAbsolute(keyName) || keyName === was.contentCredentials?.keyName;
  return isKnown ? ofUpstreams : [...ofUpstreams, { path: "contentCredentials.keyFile", message }];
}

/** Changes, with as many of their fields as an answer has room for. */
function shortened(changes: readonly Change[]): Pick<DraftVerdict, "changes" | "isShortened"> {
  let left = maxDraftChangeCharacters;
  let isShortened = false;
  const told = changes.map((change) => ({
    ...change,
    fields: change.fields.filter(({ path, before, after }) => {
      const size = path.length + before.length + after.length;
      const fits = size <= left;
      if (fits) left -= size;
      else isShortened = true;
      return fits;
    }),
  }));
  return { changes: told, isShortened };
}

function byId({ models }: Snapshot): Map<string, JsonValue> {
  return new Map(models.map((model) => [model.id, jsonOf(ModelSchema, model)]));
}

function upstreamsOf({ upstreams }: Snapshot): Map<string, JsonValue> {
  return new Map(
    Object.entries(upstreams).map(([name, one]) => [name, jsonOf(UpstreamSchema, one)]),
  );
}

/** As a part of the catalog that is always there, so that a change of it is one of the catalog. */
function credentialsOf({ contentCredentials: one }: Snapshot): Map<string, JsonValue> {
  const value = one ? { contentCredentials: jsonOf(ContentCredentialsSchema, one) } : {};
  return new Map([["", value]]);
}

function jsonOf<D extends DescMessage>(schema: D, message: Message): JsonValue {
  return toJson(schema, message as Parameters<typeof toJson<D>>[1]) as JsonValue;
}

function changesOf(
  before: ReadonlyMap<string, JsonValue>,
  after: ReadonlyMap<string, JsonValue>,
  name: (id: string) => string,
): Change[] {
  const ids = [...new Set([...before.keys(), ...after.keys()])];
  return ids.flatMap((id) => {
    const [was, is] = [before.get(id), after.get(id)];
    if (was === undefined) return [{ subject: name(id), kind: DraftChange_Kind.ADDED, fields: [] }];
    if (is === undefined)
      return [{ subject: name(id), kind: DraftChange_Kind.REMOVED, fields: [] }];
    const fields = fieldsOf(was, is, "");
    return fields.length === 0 ? [] : [changed(name(id), fields)];
  });
}

function changed(subject: string, fields: Change["fields"]): Change {
  return { subject, kind: DraftChange_Kind.CHANGED, fields };
}

/** The places where two values differ. Objects are compared field by field, other values as a whole. */
function fieldsOf(
  was: JsonValue | undefined,
  is: JsonValue | undefined,
  path: string,
): Change["fields"] {
  if (JSON.stringify(was) === JSON.stringify(is)) return [];
  if (isJsonObject(was) && isJsonObject(is)) {
    const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
    return names.flatMap((name) =>
      fieldsOf(was[name], is[name], path === "" ? name : `${path}.${name}`),
    );
  }
  const isHidden = hidden.has(path.split(".").at(-1) ?? "");
  const shown = (value: JsonValue | undefined) =>
    isHidden || value === undefined ? "" : JSON.stringify(value);
  return [{ path, before: shown(was), after: shown(is) }];
}
