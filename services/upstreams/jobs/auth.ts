// Makes the headers that carry an upstream's key, as its declaration says: the key itself, or a token signed with it.

import { createHmac } from "node:crypto";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { keyNameOf, keyOf } from "../call.ts";
import type { DriverContext } from "../media/context.ts";
import { keyMissing } from "../media/events.ts";
import { KeyMissingError } from "../media/faults.ts";
import type { Declaration } from "./declaration.ts";

/** Seconds by which the upstream's clock may be behind ours. */
const skewSeconds = 5;

/**
 * The headers that carry the key. Throws a KeyMissingError where the key, or a token's issuer, is not there. A token is signed for each
 * request, which takes some microseconds, so none is ever too old.
 */
export async function authHeaders(
  context: Pick<DriverContext, "accounts" | "secrets" | "log" | "clock">,
  upstream: Upstream,
  declaration: Pick<Declaration, "auth">,
): Promise<Record<string, string>> {
  const headers = await headersOf(upstream, declaration, context, context.clock.now());
  if (headers) return headers;
  keyMissing(context, upstream);
  throw new KeyMissingError();
}

/** The same. Undefined where something is not there. `nowMs`: the time since the epoch, for a token. */
export async function headersOf(
  upstream: Upstream,
  { auth }: Pick<Declaration, "auth">,
  { secrets }: Pick<DriverContext, "secrets">,
  nowMs: number,
): Promise<Record<string, string> | undefined> {
  if (auth === "none" || keyNameOf(upstream) === "") return {};
  const key = await keyOf({ secrets }, upstream);
  if (!key) return undefined;
  if (auth === undefined) return { authorization: `Bearer ${key}` };
  if ("header" in auth) return { [auth.header.toLowerCase()]: key };
  if ("scheme" in auth) return { authorization: `${auth.scheme} ${key}` };
  const issuer = await secrets(auth.issuerEnv);
  if (!issuer) return undefined;
  const seconds = Math.floor(nowMs / 1_000);
  const times = { exp: seconds + auth.seconds, nbf: seconds - skewSeconds };
  return { authorization: `Bearer ${signed({ iss: issuer, ...times }, key)}` };
}

/** A JSON Web Token, signed with HMAC and SHA-256 (RFC 7519). */
function signed(claims: object, key: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${text}.${createHmac("sha256", key).update(text).digest("base64url")}`;
}
