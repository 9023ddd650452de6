// The operator's routes for the catalog: what is in force, its text, drafts, versions.

import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { jsonOrText } from "#common/documents/answer-values.ts";
import { refusedText, versionDocument } from "#common/documents/version-document.ts";
import { optionalNumber, optionalString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { DraftChange_Kind, type Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Edge } from "../../context.ts";
import { operatorModel } from "../../operator-model.ts";
import { type AdminCall, adminRoute, listOf, readOperationId } from "./context.ts";
import { draftBodyBytes, maxNoteChars, maxVersionNumber } from "./limits.ts";

/**
 * Routes of the catalog: what is in force, its text, and its versions. A draft is checked without being used. A text is put in force as the next
 * version, where the installation keeps versions.
 */
export function catalogRoutes(app: FastifyInstance, edge: Edge): void {
  const get = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "GET", url, handle });
  get("/catalog", async (call) => {
    const snapshot = await snapshotOf(call);
    const models = snapshot.models.map((model) => operatorModel(model, snapshot));
    return { object: "catalog", version: snapshot.version, models };
  });
  get("/catalog/text", text);
  get("/catalog/file", file);
  get("/catalog/versions", async (call) => {
    const { versions, nextPageToken } = await call.peers.catalog.listVersions(
      call.page(),
      call.options,
    );
    return listOf(versions.map(versionDocument), nextPageToken);
  });
  adminRoute(app, edge, { method: "POST", url: "/catalog/check", handle: check });
  // It asks for the secret again, because it sets prices.
  adminRoute(app, edge, {
    ...{ method: "POST", url: "/catalog/versions", asksSecret: true },
    handle: putInForce,
  });
}

/** The snapshot in force. Refuses with SERVICE_UNAVAILABLE where there is none yet. */
export async function snapshotOf({ peers, options }: AdminCall): Promise<Snapshot> {
  const { snapshot } = await peers.catalog.getSnapshot({}, options);
  return snapshot ?? refuse(ErrorReason.SERVICE_UNAVAILABLE);
}

/** The text in force, or that of the version that the query names. */
function findText(call: AdminCall) {
  const wanted = call.query("version");
  if (!/^\d{0,9}$/.test(wanted)) refuse(ErrorReason.INVALID_VALUE, { param: "version" });
  const asked = wanted === "" ? {} : { number: Number(wanted) };
  return call.peers.catalog.getText(asked, call.options);
}

/** The same text, as a file. */
async function file(call: AdminCall) {
  const { yaml, version } = await findText(call);
  const name = version ? `catalog-${version.number}.yaml` : "catalog.yaml";
  call.reply
    .header("content-type", "application/yaml; charset=utf-8")
    .header("content-disposition", `attachment; filename="${name}"`);
  return Readable.from([yaml]);
}

async function text(call: AdminCall) {
  const told = await findText(call);
  return {
    object: "catalog.text",
    yaml: told.yaml,
    version: told.version ? versionDocument(told.version) : null,
    isEditable: told.isEditable,
    newest: told.newestNumber,
  };
}

const changeNames = new Map<number, string>([
  [DraftChange_Kind.ADDED, "added"],
  [DraftChange_Kind.REMOVED, "removed"],
  [DraftChange_Kind.CHANGED, "changed"],
]);

async function check(call: AdminCall) {
  const yaml = readYaml(await call.textBody(draftBodyBytes));
  const told = await call.peers.catalog.checkDraft({ yaml }, call.options);
  const { models, faults, changes, isShortened } = told;
  const value = (text: string) => (text === "" ? null : jsonOrText(text));
  return {
    object: "catalog.check",
    ok: faults.length === 0,
    models,
    isShortened,
    faults: faults.map(({ path, message }) => ({ path, message })),
    changes: changes.map(({ subject, kind, fields }) => ({
      model: subject,
      change: changeNames.get(kind) ?? "",
      fields: fields.map(({ path, before, after }) => ({
        ...{ path, before: value(before), after: value(after) },
      })),
    })),
  };
}

/** Puts the body's text in force, or that of an earlier version. */
async function putInForce(call: AdminCall) {
  const body = await call.textBody(draftBodyBytes);
  const number = (name: string) =>
    optionalNumber(body, name, { min: 0, max: maxVersionNumber, integer: true });
  const back = number("version");
  const expectedNumber =
    number("expected") ?? refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "expected" });
  const note = optionalString(body, "note", { max: maxNoteChars }) ?? "";
  const operationId = readOperationId(body);
  const text =
    back === undefined
      ? ({ case: "yaml", value: readYaml(body) } as const)
      : ({ case: "number", value: back } as const);
  const action = back === undefined ? "catalog.put" : "catalog.roll_back";
  const details = {
    ...{ expected: expectedNumber, operationId },
    ...(back === undefined ? {} : { version: back }),
  };
  const asked = { text, expectedNumber, note, actor: call.actor, operationId };
  const made = await call.audited(
    { action, details },
    async () => {
      const { version, faults, replayed } = await call.peers.catalog.putInForce(
        asked,
        call.options,
      );
      if (version) return { ...versionDocument(version), replayed };
      return refuse(ErrorReason.INVALID_VALUE, { param: "yaml", message: refusedText(faults) });
    },
    (version) => ({ target: `version ${version.number}` }),
  );
  call.reply.code(201);
  return made;
}

function readYaml({ yaml }: JsonObject): string {
  return typeof yaml === "string" ? yaml : refuse(ErrorReason.INVALID_TYPE, { param: "yaml" });
}
