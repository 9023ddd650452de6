// Reads the fields that any kind of job may have: seed, negative prompt, metadata. It refuses those that a model does not know.

import { optionalNumber, optionalString } from "#common/words/body.ts";
import { maxPromptCharacters, maxSeed, metadataLimits } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { Model, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { GenerationExtras, GenerationRequest } from "../../upstreams/media/port.ts";
import { isTaken } from "../../upstreams/optional-fields.ts";
import { capabilitiesOf } from "../../upstreams/protocols.ts";

/** Fields of a body that are the same for every kind of job, and that only some models know. */
export function readExtras(body: JsonObject): GenerationExtras {
  const rule = { notBlank: true, max: maxPromptCharacters };
  return {
    negativePrompt: optionalString(body, "negativePrompt", rule),
    seed: optionalNumber(body, "seed", { integer: true, min: 0, max: maxSeed }),
  };
}

/**
 * Refuses a field that the model does not know with UNSUPPORTED_PARAMETER. Any of its upstreams may get the job, so all of them must
 * take the field.
 */
export function checkExtras(
  request: GenerationRequest,
  model: Model,
  upstreams: readonly Upstream[],
): void {
  for (const name of ["negativePrompt", "seed"] as const) {
    if (request[name] === undefined) continue;
    const isKnown = (upstream: Upstream) =>
      isTaken(name, request, model.calls, capabilitiesOf(upstream.protocol));
    if (upstreams.every(isKnown)) continue;
    refuseUnknown(name, model);
  }
}

/** A job of this kind makes one output. Further ones need further jobs. */
export function checkCount(body: JsonObject, model: Model): void {
  if ((optionalNumber(body, "n", { integer: true }) ?? 1) !== 1) refuseUnknown("n", model);
}

function refuseUnknown(param: string, { id }: Model): never {
  refuse(ErrorReason.UNSUPPORTED_PARAMETER, {
    param,
    message: `The model '${id}' does not take the parameter '${param}', or not with this value.`,
  });
}

/** The caller's notes on its job. Undefined where it sent none. */
export function readMetadata(body: JsonObject): [string, string][] | undefined {
  const { metadata } = body;
  if (metadata === undefined || metadata === null) return undefined;
  if (!isJsonObject(metadata)) return refuse(ErrorReason.INVALID_TYPE, { param: "metadata" });
  const names = Object.keys(metadata);
  const { pairs, name: longest, value: max } = metadataLimits;
  if (names.length > pairs) {
    invalidMetadata(`may have at most ${pairs} pairs`);
  }
  const read = names.map((name): [string, string] => {
    // No JavaScript object can have the second name.
    if ([...name].length > longest || name === "__proto__") {
      invalidMetadata(`may have names of at most ${longest} characters, and not '__proto__'`);
    }
    return [name, optionalString(metadata, name, { max }, `metadata.${name}`) ?? ""];
  });
  // Read first, so that a value with too many characters gets that error.
  if (metadataBytes(read) > metadataLimits.jsonBytes) {
    invalidMetadata(`may have at most ${metadataLimits.jsonBytes} bytes as JSON`);
  }
  return read;
}

function metadataBytes(pairs: readonly (readonly [string, string])[]): number {
  return Buffer.byteLength(JSON.stringify(Object.fromEntries(pairs)));
}

function invalidMetadata(rule: string): never {
  refuse(ErrorReason.INVALID_VALUE, {
    param: "metadata",
    message: `The parameter 'metadata' ${rule}.`,
  });
}
