// Reads the lists of models that some protocols have. Checks and probes share it.

import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Found, Read } from "./read.ts";

/** The list of models of a protocol. */
export interface ModelList {
  /** Below the upstream's base URL. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** The names in the document. */
  names(document: JsonValue): string[];
}

/** The list of OpenAI's API: `{"data": [{"id": …}]}`. */
export const idsInData: ModelList["names"] = (document) => {
  const data = isJsonObject(document) && Array.isArray(document.data) ? document.data : [];
  return textsOf(data, "id");
};

/** Texts of one field of objects. */
export function textsOf(list: readonly JsonValue[], field: string): string[] {
  return list
    .filter(isJsonObject)
    .map((one) => one[field])
    .filter((text) => typeof text === "string");
}

/** Reads a list. */
export function readList(read: Read, upstream: Upstream, list: ModelList): Promise<Found> {
  const { path, headers } = list;
  return read(upstream, `${upstream.baseUrl}${path}`, headers ? { headers } : {});
}
