// Reads a field with an address that a caller names, such as that of a webhook. Auth, billing and media take such fields.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { isOutsideUrl } from "#kit/outside/url.ts";
import { optionalString } from "./body.ts";

/**
 * A field with a caller's address: an absolute http(s) URL without credentials. The host's addresses are checked when it is used, since
 * a name may lead elsewhere by then. Refuses with INVALID_TYPE and INVALID_VALUE.
 */
export function optionalOutsideUrl(
  body: JsonObject,
  param: string,
  maxLength: number,
): string | undefined {
  const url = optionalString(body, param, { min: 1, max: maxLength });
  if (url === undefined || isOutsideUrl(url)) return url;
  return refuse(ErrorReason.INVALID_VALUE, {
    param,
    message: `The parameter '${param}' must be an absolute http or https URL without user name and password.`,
  });
}
