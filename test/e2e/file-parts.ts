import { wavOf } from "../../services/text/files/measuring/samples.fixture.ts";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import { type CatalogObject, chat } from "./catalog.ts";

/** Models that take PDFs and audio, at each protocol that carries them. A token of input costs a micro. */
export function withReaders(usual: CatalogObject): CatalogObject {
  const takes = {
    inputModalities: ["text", "image", "pdf", "audio"],
    maxInputTokens: 200_000,
    upstreamModel: "up-model",
  };
  const said = { ...takes, audioTokensPerSecond: 20 };
  const models = [
    chat("reader", said),
    chat("reader-silent", takes),
    chat("reader-legacy", { ...said, upstream: "legacy" }),
    chat("reader-peer", { ...said, upstream: "peer" }),
    chat("pdf-only", { ...said, inputModalities: ["text", "pdf"] }),
  ];
  return { ...usual, models: [...usual.models, ...models] };
}

export const uriOf = (bytes: Buffer, type = "application/pdf") =>
  `data:${type};base64,${bytes.toString("base64")}`;
/** A file that begins like a PDF. The upstream reads the rest. */
export const pdfOf = (rest: string | Buffer) =>
  Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.from(rest), Buffer.from("\n%%EOF\n")]);
export const pdf = pdfOf("1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj");
export const wav = wavOf(2 * 8_000);
export const mp3 = sampleMp3(2);
export const inputFile = (bytes: Buffer, fields: object = {}) => ({
  type: "input_file",
  filename: "a.pdf",
  file_data: uriOf(bytes),
  ...fields,
});
export const inputAudio = (bytes: Buffer, format = "wav") => ({
  type: "input_audio",
  input_audio: { data: bytes.toString("base64"), format },
});
export const chatFile = (bytes: Buffer, fields: object = {}) => ({
  type: "file",
  file: { filename: "a.pdf", file_data: uriOf(bytes), ...fields },
});
export const text = { type: "input_text", text: "What is it?" };
export const asked = (...parts: object[]) => ({
  model: "reader",
  input: [{ role: "user", content: [text, ...parts] }],
});
export const said = (...parts: object[]) => ({
  model: "reader",
  messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, ...parts] }],
});
