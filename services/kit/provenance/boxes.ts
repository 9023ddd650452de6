// Writes and reads the boxes of which a C2PA manifest consists. `cbor.ts` writes what is in them.

/** Levels of boxes within each other. A manifest has four. */
const maxDepth = 8;

/** Boxes of a manifest. One about a hundred parts has some two thousand. */
const maxBoxes = 10_000;

/** The types of boxes with boxes in them that a manifest has, by the four letters that begin their UUID. */
export type BoxKind = "c2pa" | "c2ma" | "c2as" | "c2cl" | "c2cs" | "cbor";

/** A box with a label (JUMBF, ISO 19566-5). */
export interface LabelledBox {
  /** Four letters, such as {@link BoxKind}. */
  kind: string;
  label: string;
  /** The boxes within it that have labels. */
  boxes: readonly LabelledBox[];
  /** The bytes of its first box of CBOR. Undefined: there is none. */
  cbor: Buffer | undefined;
}

/** The bytes are no boxes. */
export class BoxError extends Error {
  override readonly name = "BoxError";
}

const uuidEnd = Buffer.from("00110010800000aa00389b71", "hex");

/** A box of any type. */
export function box(type: string, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + body.length);
  head.write(type, 4, "latin1");
  return Buffer.concat([head, body]);
}

/** A box with a label. `content`: whole boxes. */
export function labelledBox(
  kind: BoxKind,
  label: string,
  ...content: readonly Uint8Array[]
): Buffer {
  // Its label is there, and other boxes may name it.
  const toggles = Buffer.of(3);
  const text = Buffer.from(`${label}\0`);
  return box("jumb", box("jumd", Buffer.from(kind, "latin1"), uuidEnd, toggles, text), ...content);
}

/** The part of a labelled box that a hash of it covers: everything behind its own length and type. */
export function hashedPart(whole: Buffer): Buffer {
  return whole.subarray(8);
}

/** Reads a box with a label, and those within it. Throws a {@link BoxError}. */
export function readLabelledBox(bytes: Buffer): LabelledBox {
  const left = { boxes: maxBoxes };
  const [first] = boxesIn(bytes, left);
  if (first?.type !== "jumb") throw new BoxError("no box with a label");
  return labelled(first.body, 0, left);
}

/** How many more boxes are read. */
interface Left {
  boxes: number;
}

function labelled(body: Buffer, depth: number, left: Left): LabelledBox {
  if (depth > maxDepth) throw new BoxError("too deep");
  const [description, ...content] = boxesIn(body, left);
  if (description?.type !== "jumd" || description.body.length < 17) {
    throw new BoxError("no description");
  }
  const isLabelled = ((description.body[16] ?? 0) & 2) !== 0;
  const end = description.body.indexOf(0, 17);
  return {
    kind: description.body.toString("latin1", 0, 4),
    label: isLabelled && end > 0 ? description.body.toString("utf8", 17, end) : "",
    boxes: content
      .filter(({ type }) => type === "jumb")
      .map(({ body: inner }) => labelled(inner, depth + 1, left)),
    cbor: content.find(({ type }) => type === "cbor")?.body,
  };
}

function* boxesIn(bytes: Buffer, left: Left): Generator<{ type: string; body: Buffer }> {
  for (let at = 0; at < bytes.length; ) {
    if (left.boxes-- === 0) throw new BoxError("too many");
    if (at + 8 > bytes.length) throw new BoxError("cut short");
    const size = bytes.readUInt32BE(at) || bytes.length - at;
    if (size < 8 || at + size > bytes.length) throw new BoxError("cut short");
    yield {
      type: bytes.toString("latin1", at + 4, at + 8),
      body: bytes.subarray(at + 8, at + size),
    };
    at += size;
  }
}
