// Sends sealed state only to the upstream that made it, and only for the account that got it.

import type { Awaitable } from "#kit/base/awaitable.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { hashInTurns, turn } from "#kit/base/in-turns.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { speaksMessages } from "../../upstreams/protocols.ts";
import { isCarrier } from "../../upstreams/text/anthropic/carrier.ts";
import { maxOpaqueStates } from "../base/limits.ts";
import type { OpaquePart } from "./checked.ts";

/** The account that got a piece of opaque state, and the upstream that made it. */
export interface OpaqueMaker {
  /** SHA-256 in hexadecimal. The state is remembered by it, and is not kept itself. */
  hash: string;
  accountId: string;
  upstream: string;
}

/** Looks makers up by hash. Unknown ones, and those older than 30 days, are left out. */
export type OpaqueMakers = (hashes: readonly string[]) => Promise<OpaqueMaker[]>;

/** Characters that are searched before other work has its turn. They take some ms. */
const charactersAtOnce = 256 * 1024;
/** A shorter text before a `=` is no state. A decoder that stops there would have nothing to read. */
const leastStateCharacters = 16;

const base64 = /^[A-Za-z0-9+/]*$/;
const notBase64InAnyForm = /[^\w+/\s-]/;
const base64Padding = /^={0,2}\s*$/;
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * State as the most lenient decoder of base64 reads it. Either alphabet is read, other characters are skipped, the padding is added,
 * and bits that belong to no byte are dropped. Two spellings of one state have the same reading. A long text takes several turns of the
 * event loop.
 */
async function readingOf(text: string): Promise<string> {
  const parts: string[] = [];
  let isChanged = false;
  for (let at = 0; at < text.length; at += charactersAtOnce) {
    if (at > 0) await turn();
    const part = text.slice(at, at + charactersAtOnce);
    const plain = base64.test(part) ? part : plainBase64(part);
    isChanged ||= plain !== part;
    parts.push(plain);
  }
  const plain = isChanged ? parts.join("") : text;
  const over = plain.length % 4;
  if (over === 0) return plain;
  if (over === 1) return plain.slice(0, -1);
  const bits = over === 2 ? 0b110000 : 0b111100;
  const last = digits[digits.indexOf(plain.at(-1) ?? "A") & bits] ?? "";
  return plain.slice(0, -1) + last + "=".repeat(4 - over);
}

/** By the code of a character: the code of its digit in the first alphabet, from either alphabet. 0 where it is no digit. */
const digitCodes = Uint8Array.from({ length: 128 }, (_, code) => {
  const spelled = String.fromCharCode(code);
  const digit = { "-": "+", _: "/" }[spelled] ?? spelled;
  return digits.includes(digit) ? digit.charCodeAt(0) : 0;
});

/** Reads one character after the other. A pattern takes a hundred times as long where every second one is no digit. */
function plainBase64(text: string): string {
  const plain = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = digitCodes[text.charCodeAt(at)] ?? 0;
    if (digit !== 0) plain[length++] = digit;
  }
  return plain.toString("latin1", 0, length);
}

/**
 * Searches twice. One pattern for both would try the end again at each place of a long text. A long text takes several turns of the
 * event loop.
 */
async function isBase64InAnyForm(value: string): Promise<boolean> {
  const padding = await paddingOf(value);
  const end = padding === -1 ? value.length : padding;
  for (let at = 0; at < end; at += charactersAtOnce) {
    if (at > 0) await turn();
    const part = value.slice(at, Math.min(end, at + charactersAtOnce));
    if (notBase64InAnyForm.test(part)) return false;
  }
  return base64Padding.test(value.slice(end));
}

/** Hashes by which state that an upstream made is remembered: of its spelling, and of its reading as base64 where it is that. */
export async function hashesToRemember(value: string): Promise<string[]> {
  const reading = (await isBase64InAnyForm(value)) ? await readingOf(value) : value;
  return hashInTurns(reading === value ? [value] : [value, reading]);
}

/**
 * The place where the padding begins, or -1. A long text takes several turns of the event loop: one of emoji takes 3 ms a million
 * characters.
 */
async function paddingOf(text: string): Promise<number> {
  for (let at = 0; at < text.length; at += charactersAtOnce) {
    if (at > 0) await turn();
    const found = text.slice(at, at + charactersAtOnce).indexOf("=");
    if (found !== -1) return at + found;
  }
  return -1;
}

/** Hashes by which a caller's state may have been remembered. Its spelling may differ from the original one. */
async function hashesToFind(values: readonly string[]): Promise<string[][]> {
  const spellings: string[][] = [];
  let leftCharacters = charactersAtOnce;
  for (const value of values) {
    const end = await paddingOf(value);
    const forms = [value, await readingOf(value)];
    // Some decoders stop at the padding.
    if (end >= leastStateCharacters) forms.push(await readingOf(value.slice(0, end)));
    spellings.push([...new Set(forms)]);
    leftCharacters -= value.length;
    if (leftCharacters > 0) continue;
    leftCharacters = charactersAtOnce;
    await turn();
  }
  const hashes = (await hashInTurns(spellings.flat())).values();
  return spellings.map((forms) => forms.map(() => hashes.next().value ?? ""));
}

/** The facts that choosing an upstream needs. */
export interface PinContext {
  accountId: string;
  /** The model's upstreams in the order of trying, at least one. */
  upstreams: readonly Upstream[];
  /** The request's own name for its input. */
  inputParam: string;
  /** Is an upstream of this name in the catalog? */
  isKnown(name: string): boolean;
  makers: OpaqueMakers;
}

/**
 * Chooses the upstreams of a request. Opaque state is sent only to the upstream that made it, and unknown state to the model's first
 * upstream. Without state, all upstreams may be tried. Refuses with INVALID_VALUE, at the state's field: state of another account, of
 * an upstream of another model, or of two upstreams together. Such state that is optional is `foreign`: it must not be sent. Carriers
 * of thinking always are, also unknown ones: genmesh made each that is genuine.
 */
export function pinUpstream(parts: readonly OpaquePart[], context: PinContext): Awaitable<Pinned> {
  if (parts.length > 0) return pinToMaker(parts, context);
  return { upstreams: context.upstreams, foreign: noState, isPinned: false };
}

interface Pinned {
  upstreams: readonly Upstream[];
  foreign: ReadonlySet<string>;
  /** Has the model other upstreams that could answer, except for the state? */
  isPinned: boolean;
}

const noState: ReadonlySet<string> = new Set();

async function pinToMaker(parts: readonly OpaquePart[], context: PinContext): Promise<Pinned> {
  const { upstreams, inputParam } = context;
  const foreign = new Set<string>();
  if (parts.length > maxOpaqueStates) refuse(ErrorReason.INVALID_VALUE, { param: inputParam });
  // An input can be 64 MiB of state.
  const hashes = await hashesToFind(parts.map(({ value }) => value));
  const makers = Map.groupBy(
    await context.makers([...new Set(hashes.flat())]),
    (maker) => maker.hash,
  );
  // These read carriers alone. State of other upstreams says nothing to them.
  const readCarriers = upstreams.every(({ protocol }) => speaksMessages(protocol));
  let pinned: Upstream | undefined;
  let kept = 0;
  for (const [at, { param, value, isOptional, carried }] of parts.entries()) {
    const isOurs = carried !== undefined || isCarrier(value);
    if (readCarriers && !isOurs) {
      foreign.add(value);
      continue;
    }
    const known = (hashes[at] ?? []).flatMap((hash) => makers.get(hash) ?? []);
    const own = known.find((maker) => maker.accountId === context.accountId);
    if (carried && !own) {
      if (known.length > 0) refuse(ErrorReason.INVALID_VALUE, { param, ...carried });
      foreign.add(value);
      continue;
    }
    // The maker is no longer in the catalog and cannot be called. Its state is treated as unknown.
    const isUnknown = known.length === 0 || (own && !context.isKnown(own.upstream));
    if (isUnknown && !isOurs) {
      kept++;
      continue;
    }
    const upstream = own && upstreams.find((one) => one.name === own.upstream);
    if (!upstream || (pinned && pinned !== upstream)) {
      // A carrier may be left out: the model then does without its thinking.
      if (!isOptional && !isOurs) refuseState(param);
      foreign.add(value);
      continue;
    }
    kept++;
    pinned = upstream;
  }
  if (kept === 0) return { upstreams, foreign, isPinned: false };
  const only = pinned ? [pinned] : upstreams.slice(0, 1);
  return { upstreams: only, foreign, isPinned: only.length < upstreams.length };
}

function refuseState(param: string): never {
  refuse(ErrorReason.INVALID_VALUE, {
    param,
    message: `The encrypted state in '${param}' is of another account or another model. Send it to the model that made it, or leave it out.`,
  });
}
