// Turns the body of a gRPC request, which may be a typed message, into the JSON of the public API. So a service reads one form
// only.

import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";

/** A message with a body, as JSON or with types. */
interface Bodied<D extends DescMessage> {
  /** The JSON. */
  body: Uint8Array;
  /** The same with types. Undefined: the body is JSON. */
  typed: MessageShape<D> | undefined;
  desc: D;
  /** The field of the request that has `typed`. */
  field: string;
  /** Has the JSON the names of the proto file? Default: those in camel case. */
  useProtoFieldName?: boolean;
}

/**
 * The JSON body of a request, in the public API's form. Of a typed body, `others` has further fields by name. Refuses with
 * INVALID_ARGUMENT where both forms are there, or no JSON can say the same. Refuses with INVALID_VALUE a name that is set twice.
 */
export function jsonBody<D extends DescMessage>(request: Bodied<D>): Uint8Array {
  const { body, typed, desc, field, useProtoFieldName = false } = request;
  if (!typed) return body;
  if (body.length > 0) invalid(field);
  const { others, ...named } = jsonOf(desc, typed, { field, useProtoFieldName });
  for (const param of Object.keys(others ?? {})) {
    if (!Object.hasOwn(named, param)) continue;
    refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `The parameter '${param}' is set twice: by its own field, and in 'others'.`,
    });
  }
  return Buffer.from(JSON.stringify({ ...(others as JsonObject | undefined), ...named }));
}

/** Infinite numbers, and values that are not set, have no JSON. */
function jsonOf<D extends DescMessage>(
  desc: D,
  typed: MessageShape<D>,
  { field, ...names }: { field: string; useProtoFieldName: boolean },
): JsonObject {
  try {
    return toJson(desc, typed, names) as JsonObject;
  } catch (cause) {
    return invalid(field, cause);
  }
}

function invalid(field: string, cause?: unknown): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field }, cause });
}
