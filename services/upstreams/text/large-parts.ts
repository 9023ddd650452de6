// Upstreams answer with megabytes in two cases: the log probabilities of every token (with 20 alternatives 1.6 KB a token), and
// images in base64. Genmesh does not look into these. So a large answer is parsed in a thread, which replaces each such part by a
// mark. The rest is read, metered and rewritten like any other answer. When it is written, the bytes of the parts replace the
// marks.

import { randomUUID } from "node:crypto";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { isJsonObject, type JsonObject, type JsonValue, shapeFault } from "#kit/base/json.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { anyObjectIn, isTooDeep } from "../call.ts";
import { only } from "./allowed.ts";
import { tokenFields } from "./chat/visible-fields.ts";
import { UpstreamFailure } from "./failure.ts";
import {
  largeAnswerBytes,
  leastLiftedBytes,
  maxRestBytes,
  maxRestMarks,
  tokensLiftedAtOnce,
} from "./limits.ts";
import type { ReportedUsage } from "./port.ts";
import { usageIn } from "./usage.ts";

/** A JSON answer, or one event of a stream, whose large parts must be taken out. */
export interface LiftJob {
  bytes: Uint8Array;
  /** The beginning of each mark. */
  mark: string;
  /** Number of the first mark. */
  first: number;
  /** Must log probabilities have the form of chat completions, without other fields of the upstream's? */
  isChat: boolean;
  /** Are they taken out in groups, because the text may be cut at a stop sequence? */
  isGrouped: boolean;
}

/** The result of a {@link LiftJob}. */
export interface LiftedParts {
  /** JSON with marks. */
  rest: Uint8Array;
  parts: { bytes: Uint8Array; spelled: string }[];
}

/** The result where the rest is still too large, or nested too deep. Only its usage counts. */
export interface Unreadable {
  rest?: never;
  usage: ReportedUsage | undefined;
}

/** Does a {@link LiftJob} on a copy of its bytes, in a thread if they are large. Undefined for bytes that are no JSON object. */
export type Lift = (
  job: LiftJob,
  asking: { accountId: string; signal: StopSignal },
) => Promise<LiftedParts | Unreadable | undefined>;

/** Strings of these names are bytes in base64. They are not searched for generated text. */
const imageFields: ReadonlySet<string> = new Set(["result", "partial_image_b64", "image_url"]);
/** A response holds items, items hold parts, and parts hold log probabilities. Deeper values are the model's own data. */
const maxDepth = 8;

/** {@link Lift} in the calling thread. */
export function liftParts({
  bytes,
  mark,
  first,
  isChat,
  isGrouped,
}: LiftJob): LiftedParts | Unreadable | undefined {
  const value = anyObjectIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  if (!value) return undefined;
  if (isTooDeep(bytes)) return { usage: usageIn(value)?.usage };
  const parts: LiftedParts["parts"] = [];
  const put = (json: string, spell: (mark: string) => JsonValue): JsonValue => {
    const placeholder = spell(`${mark}${first + parts.length}`);
    parts.push({ bytes: Buffer.from(json), spelled: JSON.stringify(placeholder) });
    return placeholder;
  };
  const liftTokens = (tokens: JsonValue[]): JsonValue[] => {
    const shown = isChat
      ? tokens.filter(isJsonObject).map((token) => only(token, tokenFields))
      : tokens;
    if (JSON.stringify(shown).length < leastLiftedBytes) return shown;
    const lifted: JsonValue[] = [];
    const atOnce = isGrouped ? tokensLiftedAtOnce : shown.length;
    for (let at = 0; at < shown.length; at += atOnce) {
      const group = shown.slice(at, at + atOnce);
      const token = isGrouped ? group.map(textOfToken).join("") : "";
      lifted.push(put(JSON.stringify(group).slice(1, -1), (logprob) => ({ logprob, token })));
    }
    return lifted;
  };
  const visit = (found: JsonObject | JsonValue[], depth: number): void => {
    // For a list, the names are its indexes.
    const object = found as JsonObject;
    for (const [name, inner] of Object.entries(object)) {
      const isTokens = name === "logprobs" || (depth === -1 && Array.isArray(inner));
      if (isTokens && Array.isArray(inner)) object[name] = liftTokens(inner);
      // In chat completions log probabilities are an object with lists of them.
      else if (isTokens && isJsonObject(inner)) visit(inner, -1);
      else if (typeof inner === "string") {
        if (inner.length < leastLiftedBytes || !imageFields.has(name)) continue;
        object[name] = put(JSON.stringify(inner), (spelled) => spelled);
      } else if (typeof inner === "object" && inner !== null && depth >= 0 && depth < maxDepth) {
        visit(inner, depth + 1);
      }
    }
  };
  visit(value, 0);
  const rest = Buffer.from(JSON.stringify(value));
  const isReadable =
    rest.length <= maxRestBytes && shapeFault(rest, { marks: maxRestMarks }) === undefined;
  return isReadable ? { rest, parts } : { usage: usageIn(value)?.usage };
}

function textOfToken(token: JsonValue): string {
  return isJsonObject(token) && typeof token.token === "string" ? token.token : "";
}

/** Options for taking large parts out of one answer. */
export interface LargePartsOptions
  extends Pick<LiftJob, "isChat" | "isGrouped">,
    Pick<Parameters<Lift>[1], "accountId" | "signal"> {
  lift: Lift;
}

/** Bytes at either end by which parts are told apart before they are compared. There may be thousands of parts. */
const endBytes = 64;

/** The large parts of one answer, kept until the rest of the answer is written. */
export class LargeParts {
  readonly #options: LargePartsOptions;
  /** Made for the first large answer. */
  #mark = "";
  readonly #parts: { bytes: Uint8Array; spelled: Buffer }[] = [];
  /** The bytes of parts, by their length, beginning and end. */
  #alike: Map<string, Uint8Array[]> | undefined;

  /** Was nothing taken out? */
  isEmpty = true;

  constructor(options: LargePartsOptions) {
    this.#options = options;
  }

  /**
   * JSON with marks instead of its large parts. Data that is not large, or is no JSON object, stays unchanged. Throws `UpstreamFailure`
   * with its usage where the rest is too large or nested too deep.
   */
  takeFrom(data: Buffer): Awaitable<Buffer> {
    return data.length <= largeAnswerBytes ? data : this.#lifted(data);
  }

  async #lifted(data: Buffer): Promise<Buffer> {
    this.#mark ||= `part-of-answer:${randomUUID()}:`;
    const { lift, isChat, isGrouped, ...asking } = this.#options;
    const first = this.#parts.length;
    const job = { bytes: data, mark: this.#mark, first, isChat, isGrouped };
    const lifted = await lift(job, asking);
    if (!lifted) return data;
    if (!lifted.rest) {
      const failure = new UpstreamFailure("too_large");
      failure.usage = lifted.usage;
      throw failure;
    }
    const rest = Buffer.from(lifted.rest.buffer, lifted.rest.byteOffset, lifted.rest.length);
    for (const { bytes: found, spelled } of lifted.parts) {
      this.#parts.push({ bytes: this.#held(found), spelled: Buffer.from(spelled) });
      this.isEmpty = false;
    }
    return rest;
  }

  /** The same bytes from an earlier part, where there is one. The last events of a stream repeat parts of earlier events. */
  #held(found: Uint8Array): Uint8Array {
    const bytes = Buffer.from(found.buffer, found.byteOffset, found.length);
    const ends = [bytes.subarray(0, endBytes), bytes.subarray(-endBytes)];
    const key = [found.length, ...ends.map((end) => end.toString("latin1"))].join();
    this.#alike ??= new Map();
    const alike = this.#alike.get(key) ?? [];
    const same = alike.find((one) => Buffer.compare(one, found) === 0);
    if (same) return same;
    alike.push(found);
    this.#alike.set(key, alike);
    return found;
  }

  /** Written JSON with the parts instead of their marks. */
  fill(written: Uint8Array): Uint8Array {
    if (this.isEmpty) return written;
    const bytes = Buffer.from(written.buffer, written.byteOffset, written.length);
    const filled: Uint8Array[] = [];
    let from = 0;
    for (let at = bytes.indexOf(this.#mark); at !== -1; at = bytes.indexOf(this.#mark, at + 1)) {
      const digits = bytes.subarray(at + this.#mark.length, at + this.#mark.length + 12);
      const part = this.#parts[Number.parseInt(digits.toString("latin1"), 10)];
      if (!part) continue;
      const start = at - part.spelled.indexOf(this.#mark);
      const end = start + part.spelled.length;
      if (start < from || !bytes.subarray(start, end).equals(part.spelled)) continue;
      filled.push(bytes.subarray(from, start), part.bytes);
      from = end;
    }
    if (from === 0) return written;
    filled.push(bytes.subarray(from));
    return Buffer.concat(filled);
  }
}
