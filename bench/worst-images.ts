import * as samples from "#kit/images/samples.fixture.ts";
import { models } from "./requests.ts";
import type { Target } from "./target.ts";

/** An image that was made to take the most of who decodes it. */
interface WorstImage {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** Copies that are uploaded at once. */
  uploads: number;
  /** Copies that are sent at once as data URIs of a text request. */
  inline: number;
}

/** Copies at once of an image that is small. They wait for decoders, and take a decoder 16 s at most. */
const many = 24;
/** Copies at once of an image of 10 MiB or more, or one that takes seconds. Every decoder has some turns. */
const few = 6;
const mib = 1024 * 1024;

/** The images of `test/attacks/images.test.ts`, then others of the tests of `services/kit/images`. */
export async function worstImages(): Promise<readonly WorstImage[]> {
  const image = async (name: string, bytes: Buffer | Promise<Buffer>, uploads: number) => {
    const made = new Uint8Array(await bytes);
    return { name, bytes: made, uploads, inline: made.length > 1 * mib ? few : uploads };
  };
  const [width, height] = [8_000, 6_250];
  // Blocks of one colour each: many colours, and compressed well.
  const blocks = samples.noise(40, 30).resize(width, height, { kernel: "nearest" });
  const emptyChunk = samples.pngChunk("IDAT", Buffer.alloc(0));
  const emptyChunks = Buffer.alloc(1_500_000 * emptyChunk.length, emptyChunk);
  return [
    await image("PNG, rows of a pixel", samples.plainPng(1, 50_000_000), many),
    await image("PNG, text that unpacks", samples.textBombPng(2 * mib), many),
    await image("JPEG, 100 scans", samples.jpegOfScans(width, height, 100), many),
    await image(
      "JPEG, progressive, all colours",
      samples
        .plain(width, height)
        .jpeg({ progressive: true, chromaSubsampling: "4:4:4" })
        .toBuffer(),
      few,
    ),
    await image("WebP, lossless", blocks.webp({ lossless: true, effort: 0 }).toBuffer(), few),
    await image(
      "PNG, empty chunks",
      samples.plainPng(1_000, 1_000, (data) =>
        Buffer.concat([emptyChunks, samples.pngChunk("IDAT", data)]),
      ),
      few,
    ),
    await image("PNG, 15 MiB of noise", noisePng(), few),
  ];
}

/** A PNG of noise that is stored and not compressed. */
function noisePng(): Promise<Buffer> {
  return samples.noise(2_600, 2_000).png({ compressionLevel: 0 }).toBuffer();
}

/** Shows an image by uploads, then in text requests. Whether it is refused does not matter. Throws where the process fails. */
export async function show(
  { port, requests }: Pick<Target, "port" | "requests">,
  { name, bytes, uploads, inline }: WorstImage,
): Promise<void> {
  const send = async (i: number, path: string, body: FormData | string) => {
    const all = requests.json ?? [];
    const authorization = /authorization: (.*)\r\n/.exec(`${all[i % all.length]}`)?.[1] ?? "";
    const type = typeof body === "string" ? { "content-type": "application/json" } : {};
    const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, {
      method: "POST",
      headers: { authorization, ...type },
      body,
    });
    await answer.arrayBuffer();
    if (answer.status === 500) throw new Error(`${name}: ${path} was answered 500`);
  };
  const upload = (_: unknown, i: number) => {
    const form = new FormData();
    form.set("purpose", "vision");
    form.set("file", new Blob([bytes]), "a.png");
    return send(i, "/files", form);
  };
  await Promise.all(Array.from({ length: uploads }, upload));
  const url = `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`;
  const content = [{ type: "input_image", image_url: url }];
  const body = JSON.stringify({ model: models.seeing, input: [{ role: "user", content }] });
  await Promise.all(Array.from({ length: inline }, (_, i) => send(i, "/responses", body)));
}
