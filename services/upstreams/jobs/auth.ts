import { createHmac } from "node:crypto";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { keyMissing } from "../media/events.ts";
import { KeyMissingError } from "../media/faults.ts";
import type { Declaration } from "./declaration.ts";

/** Seconds by which the upstream's clock may be behind ours. */
const skewSeconds = 5;

/**
 * The headers that carry the key. Throws a KeyMissingError where a variable is not set. A token is signed for each request, which takes
 * some microseconds, so none is ever too old.
 */
export function authHeaders(
  { secrets, log, clock }: Pick<DriverContext, "secrets" | "log" | "clock">,
  upstream: Upstream,
  declaration: Pick<Declaration, "auth">,
): Record<string, string> {
  const secretOf = (variable: string) => {
    const secret = secrets(variable);
    if (secret) return secret;
    keyMissing(log, { name: upstream.name, apiKeyEnv: variable });
    throw new KeyMissingError();
  };
  return headersOf(upstream, declaration, secretOf, clock.now());
}

/** The same with the values of variables as `secretOf` gives them. `nowMs`: the time since the epoch, for a token. */
export function headersOf(
  upstream: Pick<Upstream, "apiKeyEnv">,
  { auth }: Pick<Declaration, "auth">,
  secretOf: (variable: string) => string,
  nowMs: number,
): Record<string, string> {
  if (auth === "none" || upstream.apiKeyEnv === "") return {};
  const key = secretOf(upstream.apiKeyEnv);
  if (auth === undefined) return { authorization: `Bearer ${key}` };
  if ("header" in auth) return { [auth.header.toLowerCase()]: key };
  if ("scheme" in auth) return { authorization: `${auth.scheme} ${key}` };
  const issuer = secretOf(auth.issuerEnv);
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
