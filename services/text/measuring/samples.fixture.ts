import { deflateSync } from "node:zlib";

/** An object of a PDF: its value, and the bytes of its stream where it has one. */
export interface SampleObject {
  value: string;
  stream?: Buffer;
}

/** A stream, packed. */
export function packed(bytes: string | Buffer, more = ""): SampleObject {
  const stream = deflateSync(bytes);
  return { value: `<</Filter/FlateDecode/Length ${stream.length}${more}>>`, stream };
}

/** A file of objects by their numbers, with a table of where they stand; the first one is the catalog. */
export function pdfOf(objects: Readonly<Record<number, SampleObject | string>>, more = ""): Buffer {
  const parts: Buffer[] = [Buffer.from("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  const places = new Map<number, number>();
  let size = parts[0]?.length ?? 0;
  const add = (bytes: Buffer) => {
    parts.push(bytes);
    size += bytes.length;
  };
  const largest = Math.max(...Object.keys(objects).map(Number));
  for (const [number, object] of Object.entries(objects)) {
    const { value, stream } = typeof object === "string" ? { value: object } : object;
    places.set(Number(number), size);
    add(Buffer.from(`${number} 0 obj\n${value}\n`, "latin1"));
    if (stream) {
      add(Buffer.from("stream\n"));
      add(stream);
      add(Buffer.from("\nendstream\n"));
    }
    add(Buffer.from("endobj\n"));
  }
  const table = Array.from({ length: largest + 1 }, (_, number) => {
    const place = places.get(number);
    const kind = place === undefined ? "65535 f" : "00000 n";
    return `${String(place ?? 0).padStart(10, "0")} ${kind} \n`;
  });
  const at = size;
  add(Buffer.from(`xref\n0 ${largest + 1}\n${table.join("")}`));
  add(
    Buffer.from(`trailer\n<</Size ${largest + 1}/Root 1 0 R${more}>>\nstartxref\n${at}\n%%EOF\n`),
  );
  return Buffer.concat(parts);
}

/** Objects of a file whose pages all show a text each. */
export function pagesOf(texts: readonly string[]): Record<number, SampleObject | string> {
  const kids = texts.map((_, at) => `${10 + 2 * at} 0 R`).join(" ");
  const objects: Record<number, SampleObject | string> = {
    1: "<</Type/Catalog/Pages 2 0 R>>",
    2: `<</Type/Pages/Count ${texts.length}/Kids[${kids}]>>`,
    3: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
  };
  for (const [at, text] of texts.entries()) {
    const content = 11 + 2 * at;
    objects[10 + 2 * at] =
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents ${content} 0 R>>`;
    objects[content] = packed(`BT /F1 12 Tf 72 700 Td (${text}) Tj ET`);
  }
  return objects;
}

/** A PDF whose pages all show a text each. */
export function samplePdf(texts: readonly string[] = ["Hello."]): Buffer {
  return pdfOf(pagesOf(texts));
}

/** A stream of objects by their numbers. */
export function objectStream(objects: Readonly<Record<number, string>>): SampleObject {
  const entries = Object.entries(objects);
  let offset = 0;
  const heads = entries.map(([number, value]) => {
    const head = `${number} ${offset}`;
    offset += value.length + 1;
    return head;
  });
  const head = `${heads.join(" ")} `;
  const body = entries.map(([, value]) => value).join(" ");
  return packed(head + body, `/Type/ObjStm/N ${entries.length}/First ${head.length}`);
}

/** What a WAV says of itself. */
export interface SampleWav {
  code: number;
  channels: number;
  rate: number;
  bits: number;
  bytesPerSecond: number;
  /** Bytes of samples that it claims. */
  claimed: number;
}

/** A WAV with so many bytes of silence: a byte for each of 8,000 samples a second, unless it says otherwise. */
export function wavOf(samples: number, said: Partial<SampleWav> = {}): Buffer<ArrayBuffer> {
  const { code = 1, channels = 1, rate = 8_000, bits = 8, claimed = samples } = said;
  const block = (channels * bits) / 8;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(code, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(said.bytesPerSecond ?? rate * block, 28);
  head.writeUInt16LE(block, 32);
  head.writeUInt16LE(bits, 34);
  head.write("data", 36);
  head.writeUInt32LE(claimed, 40);
  return Buffer.concat([head, Buffer.alloc(samples, 128)]);
}
