// Reads what a file says of its origin, to show it to a person. The file may come from anywhere, so all that is read has a bound.

import { X509Certificate } from "node:crypto";
import { BoxError, type LabelledBox, readLabelledBox } from "./boxes.ts";
import { type Cbor, CborError, decodeCbor, Tagged } from "./cbor.ts";
import { inJpeg, inPng } from "./images.ts";
import { c2paType, headAt, maxBoxes } from "./mp4-boxes.ts";

/**
 * Bytes of a file's beginning in which its manifest is looked for. Writers put it before the image data. One with some thumbnails and the
 * history of its parts has a megabyte.
 */
export const readHeadBytes = 4 * 1024 * 1024;
/** Bytes of one box of CBOR that is read. A claim about a hundred parts has some 20 KiB. */
const maxCborBytes = 256 * 1024;
/** Lists of actions that are read. Writers make one, or one for each tool. */
const maxActionLists = 4;
/** Characters of each text that is shown. */
const maxText = 200;

/** A file's own words about its origin. Signatures and hashes are not checked. */
export interface Origin {
  /** The program that made the manifest, with its version. Undefined: it does not say. */
  generator: string | undefined;
  /** The holder of the signing certificate: an organization, or a name. */
  signer: string | undefined;
  /** The issuer of the certificate. */
  issuer: string | undefined;
  /** Did a trained model make it, or a part of it? */
  madeByAi: boolean;
  /** Milliseconds since the epoch. Undefined: it does not say. */
  madeAtMs: number | undefined;
}

/** The words of a manifest, or a manifest that cannot be read. Undefined: none was found. */
export type FoundOrigin = Origin | "unreadable" | undefined;

/** Reads what a file says of its origin. `head`: its first {@link readHeadBytes}, or all of it. */
export function readOrigin(head: Buffer, mimeType: string): FoundOrigin {
  const manifest = finders[mimeType]?.(head);
  if (!manifest) return undefined;
  try {
    return originIn(readLabelledBox(manifest));
  } catch (error) {
    if (error instanceof BoxError || error instanceof CborError) return "unreadable";
    throw error;
  }
}

/** Are there files of this type with a manifest that is read here? */
export function hasOrigin(mimeType: string): boolean {
  return finders[mimeType] !== undefined;
}

const finders: Readonly<Record<string, (head: Buffer) => Buffer | undefined>> = {
  "image/png": inPng.find,
  "image/jpeg": inJpeg.find,
  "video/mp4": findInMp4,
};

function findInMp4(head: Buffer): Buffer | undefined {
  for (let at = 0, boxes = 0; ; boxes++) {
    const found = headAt(head, at);
    if (!found || boxes > maxBoxes || found.size < found.headBytes || at + found.size > head.length)
      return undefined;
    const body = head.subarray(at + found.headBytes, at + found.size);
    const purposeAt = c2paType.length + 4;
    if (found.type === "uuid" && c2paType.equals(body.subarray(0, c2paType.length))) {
      const purposeEnd = body.indexOf(0, purposeAt);
      const isManifest = body.toString("latin1", purposeAt, purposeEnd) === "manifest";
      // Behind the purpose comes the place of a further box.
      const manifest = body.subarray(purposeEnd + 1 + 8);
      const size = manifest.length >= 4 ? manifest.readUInt32BE() : 0;
      if (isManifest) return manifest.subarray(0, size);
    }
    at += found.size;
  }
}

/** The last manifest is the file's own. Those before it are of its parts. */
function originIn(store: LabelledBox): FoundOrigin {
  const manifest = store.boxes.filter(({ kind }) => kind === "c2ma" || kind === "c2um").at(-1);
  const inner = (kind: string) => manifest?.boxes.find((one) => one.kind === kind);
  const claim = contentOf(inner("c2cl"));
  if (!(claim instanceof Map)) return "unreadable";
  const actions = (inner("c2as")?.boxes ?? [])
    .filter(({ label }) => /^c2pa\.actions(\.v2)?(__\d+)?$/.test(label))
    .slice(0, maxActionLists)
    .flatMap((one) => listAt(contentOf(one), "actions"));
  const times = actions.flatMap((action) => timeOf(at(action, "when")) ?? []);
  return {
    generator: generatorIn(claim),
    ...signerIn(contentOf(inner("c2cs"))),
    madeByAi: actions.some((action) => isMadeByAi(at(action, "digitalSourceType"))),
    madeAtMs: times[0],
  };
}

function contentOf(box: LabelledBox | undefined): Cbor {
  if (!box?.cbor || box.cbor.length > maxCborBytes) return null;
  return decodeCbor(box.cbor);
}

function at(value: Cbor | undefined, key: string | number): Cbor {
  return (value instanceof Map ? (value.get(key) as Cbor | undefined) : undefined) ?? null;
}

function listAt(value: Cbor, key: string): readonly Cbor[] {
  const list = at(value, key);
  return Array.isArray(list) ? list : [];
}

/** Claims of version 2 have one program, those of version 1 a list or a text. */
function generatorIn(claim: Cbor): string | undefined {
  const info = at(claim, "claim_generator_info");
  const one = Array.isArray(info) ? (info[0] as Cbor) : info;
  const words = [at(one, "name"), at(one, "version")].filter((word) => typeof word === "string");
  return shown(words.length > 0 ? words.join(" ") : at(claim, "claim_generator"));
}

/** Names of a trained model's work, in whole or in part, end so. */
function isMadeByAi(type: Cbor): boolean {
  return typeof type === "string" && /trainedAlgorithmicMedia$/i.test(type);
}

function timeOf(value: Cbor): number | undefined {
  const text = value instanceof Tagged ? value.value : value;
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** The first certificate of a COSE signature, which lies in one of its two headers. */
function signerIn(signature: Cbor): Pick<Origin, "signer" | "issuer"> {
  const parts = signature instanceof Tagged ? signature.value : signature;
  const [protectedHeader, header] = Array.isArray(parts) ? (parts as Cbor[]) : [];
  const known = protectedHeader instanceof Uint8Array ? decodeCbor(protectedHeader) : null;
  const chain = [at(known, 33), at(known, "x5chain"), at(header, 33), at(header, "x5chain")].find(
    (value) => value !== null,
  );
  const own = Array.isArray(chain) ? chain[0] : chain;
  const certificate = own instanceof Uint8Array ? certificateIn(own) : undefined;
  return { signer: nameIn(certificate?.subject), issuer: nameIn(certificate?.issuer) };
}

function certificateIn(bytes: Uint8Array): X509Certificate | undefined {
  try {
    return new X509Certificate(bytes);
  } catch {
    return undefined;
  }
}

/** The organization of a certificate's subject, or its name. */
function nameIn(subject: string | undefined): string | undefined {
  const lines = subject?.split("\n") ?? [];
  const named = (key: string) => lines.find((line) => line.startsWith(key))?.slice(key.length);
  return shown(named("O=") ?? named("CN=") ?? null);
}

function shown(text: Cbor): string | undefined {
  if (typeof text !== "string") return undefined;
  return text.slice(0, maxText).replace(/\p{C}/gu, "") || undefined;
}
