import { createHmac } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { SeenRequest } from "../scripted-upstream.ts";
import type { State } from "./declared.ts";
import { type Answer, reply, replyText } from "./double.ts";

/** The form in which a service takes its key, and its answer to a wrong one. */
export type KeyForm = { denied: Answer } & (
  | { header: string; before?: string; query?: string }
  /** A token that is signed with the key, for this issuer. */
  | { issuer: string }
);

/** The name of the signed tokens' issuer. */
export const tokenIssuer = "access-key";

/** The answer to a request whose key is not right. Undefined: it is. */
export function keyFault(
  form: KeyForm,
  { headers, query }: SeenRequest,
  key: string,
  nowMs: number,
): Answer | undefined {
  if ("header" in form) {
    const isInQuery = form.query !== undefined && query.get(form.query) === key;
    const isRight = isInQuery || headers[form.header] === `${form.before ?? ""}${key}`;
    return isRight ? undefined : form.denied;
  }
  const [scheme, token = ""] = String(headers.authorization ?? "").split(" ");
  return scheme === "Bearer" && isSigned(token, form.issuer, key, nowMs) ? undefined : form.denied;
}

/** Kling's General Information page: HS256, `typ: JWT`, `iss`, `exp` after now, and `nbf` at most 5 s before it. */
function isSigned(token: string, issuer: string, key: string, nowMs: number): boolean {
  const [head = "", claims = "", signature = ""] = token.split(".");
  const wanted = createHmac("sha256", key).update(`${head}.${claims}`).digest("base64url");
  if (signature !== wanted) return false;
  const [about, said] = [head, claims].map((part) =>
    JSON.parse(Buffer.from(part, "base64url").toString()),
  );
  if (!isJsonObject(about) || !isJsonObject(said)) return false;
  const seconds = nowMs / 1_000;
  return (
    about.alg === "HS256" &&
    about.typ === "JWT" &&
    said.iss === issuer &&
    Number(said.exp) > seconds &&
    Number(said.nbf) <= seconds
  );
}

/** The usual answer of services to a wrong key. */
export const unauthorized = reply(401, { error: { code: "invalid_api_key", message: "no" } });

/** The key as most services take it. */
export const bearer = { header: "authorization", before: "Bearer ", denied: unauthorized };
/** Milliseconds of a day. */
export const dayMs = 24 * 3_600_000;

/** A service that takes nothing now. */
export const down = replyText(503);

/** An error as a part of an answer. */
export function code(value: JsonValue): JsonObject {
  return { error: { code: value, message: "in words of the service" } };
}

/** A service's words for our states. */
export type Words = Record<Exclude<State, "expired">, string> & { expired?: string };
