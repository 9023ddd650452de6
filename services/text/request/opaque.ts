import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { hashInTurns, turn } from "#kit/base/in-turns.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxOpaqueStates } from "../base/limits.ts";
import type { OpaquePart } from "./checked.ts";

/** Who a piece of opaque state was made for, and by which upstream. */
export interface OpaqueMaker {
  /** SHA-256 in hexadecimal, under which it is remembered: it is not kept itself. */
  hash: string;
  accountId: string;
  upstream: string;
}

/** Looks makers up by hash; what is unknown or older than 30 days is left out. */
export type OpaqueMakers = (hashes: readonly string[]) => Promise<OpaqueMaker[]>;

/** Characters that are looked through before others get their turn: some ms. */
const charactersAtOnce = 256 * 1024;
/** Shorter text before a `=` is no state: a decoder that stops there would have nothing to read. */
const leastStateCharacters = 16;

const base64 = /^[A-Za-z0-9+/]*$/;
const notBase64InAnyForm = /[^\w+/\s-]/;
const base64Padding = /^={0,2}\s*$/;
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * State as a decoder of base64 reads it that forgives all it can: either alphabet, without what is in neither, filled up, and
 * without bits that belong to no byte. Two spellings of one state have one such reading. Of a long text in several turns of the event loop.
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

/** By the code of a character: that of the digit that it stands for, in either alphabet; 0 for what is none. */
const digitCodes = Uint8Array.from({ length: 128 }, (_, code) => {
  const spelled = String.fromCharCode(code);
  const digit = { "-": "+", _: "/" }[spelled] ?? spelled;
  return digits.includes(digit) ? digit.charCodeAt(0) : 0;
});

/** One character after the other: a pattern takes a hundred times as long where every second one is no digit. */
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
 * In two looks: one pattern for both would try the end anew at each place of a long text. Of that in several turns of the event
 * loop.
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

/** Hashes under which state that an upstream made is remembered: as it was spelled, and as base64 where it is that. */
export async function hashesToRemember(value: string): Promise<string[]> {
  const reading = (await isBase64InAnyForm(value)) ? await readingOf(value) : value;
  return hashInTurns(reading === value ? [value] : [value, reading]);
}

/** Where the padding begins, or -1. Of a long text in several turns of the event loop: one of emoji takes 3 ms a million characters. */
async function paddingOf(text: string): Promise<number> {
  for (let at = 0; at < text.length; at += charactersAtOnce) {
    if (at > 0) await turn();
    const found = text.slice(at, at + charactersAtOnce).indexOf("=");
    if (found !== -1) return at + found;
  }
  return -1;
}

/** Hashes under which state that a caller sends may be remembered: it may be spelled in another way than it was made. */
async function hashesToFind(values: readonly string[]): Promise<string[][]> {
  const spellings: string[][] = [];
  let leftCharacters = charactersAtOnce;
  for (const value of values) {
    const end = await paddingOf(value);
    const forms = [value, await readingOf(value)];
    // Some decoders stop where the padding is.
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

/** What choosing needs to know. */
export interface PinContext {
  accountId: string;
  /** The model's, in the order of trying; at least one. */
  upstreams: readonly Upstream[];
  /** The request's own name for its input. */
  inputParam: string;
  /** Is an upstream of this name in the catalog? */
  isKnown(name: string): boolean;
  makers: OpaqueMakers;
}

/**
 * Where a request goes. Opaque state goes back to the upstream that made it and to no other, one that no record knows to the
 * model's first; without any, all of them may be tried. Refuses with INVALID_VALUE, at the state's field, another
 * account's, another model's upstream's, and states of two upstreams together. Those that are optional are `foreign`: they may not go up.
 */
export async function pinUpstream(
  parts: readonly OpaquePart[],
  context: PinContext,
): Promise<{ upstreams: readonly Upstream[]; foreign: ReadonlySet<string> }> {
  const { upstreams, inputParam } = context;
  const foreign = new Set<string>();
  if (parts.length === 0) return { upstreams, foreign };
  if (parts.length > maxOpaqueStates) refuse(ErrorReason.INVALID_VALUE, { param: inputParam });
  // An input can be 64 MiB of state.
  const hashes = await hashesToFind(parts.map(({ value }) => value));
  const makers = Map.groupBy(
    await context.makers([...new Set(hashes.flat())]),
    (maker) => maker.hash,
  );
  let pinned: Upstream | undefined;
  let kept = 0;
  for (const [at, { param, value, isOptional }] of parts.entries()) {
    const known = (hashes[at] ?? []).flatMap((hash) => makers.get(hash) ?? []);
    const own = known.find((maker) => maker.accountId === context.accountId);
    // An upstream that the catalog no longer has cannot be asked; the state is then as good as unknown.
    if (known.length === 0 || (own && !context.isKnown(own.upstream))) {
      kept++;
      continue;
    }
    const upstream = own && upstreams.find((one) => one.name === own.upstream);
    if (!upstream || (pinned && pinned !== upstream)) {
      if (!isOptional) refuseState(param);
      foreign.add(value);
      continue;
    }
    kept++;
    pinned = upstream;
  }
  if (kept === 0) return { upstreams, foreign };
  return { upstreams: pinned ? [pinned] : upstreams.slice(0, 1), foreign };
}

function refuseState(param: string): never {
  refuse(ErrorReason.INVALID_VALUE, {
    param,
    message: `The encrypted state in '${param}' is of another account or another model. Send it to the model that made it, or leave it out.`,
  });
}
