import { wavOf } from "../../services/text/files/measuring/samples.fixture.ts";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";

const mib = 1024 * 1024;
const uriOf = (bytes: Buffer) => `data:application/pdf;base64,${bytes.toString("base64")}`;
const inputFile = (bytes: Buffer) => ({
  type: "input_file",
  filename: "a.pdf",
  file_data: uriOf(bytes),
});
const inputAudio = (bytes: Buffer, format: string) => ({
  type: "input_audio",
  input_audio: { data: bytes.toString("base64"), format },
});
/** A file that begins like a PDF, and has `bytes` further bytes. */
const pdfOf = (bytes: number) =>
  Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(bytes, 0xa5)]);
const shortFrames = () => {
  const frame = Buffer.alloc(24);
  frame.writeUInt32BE(0xfff314c4);
  return Buffer.alloc(20 * mib, frame);
};

/** Contents of a user's message with the largest allowed files, by the API that takes them. */
export const largeFiles: Record<"responses" | "chat", Record<string, () => object[]>> = {
  responses: {
    "a PDF of 19 MiB": () => [inputFile(pdfOf(19 * mib))],
    "20 MiB of short MP3 frames": () => [inputAudio(shortFrames(), "mp3")],
    "20 sounds": () => Array.from({ length: 20 }, () => inputAudio(sampleMp3(60), "mp3")),
  },
  chat: {
    "a PDF of 19 MiB in chat": () => {
      const file_data = uriOf(pdfOf(19 * mib));
      return [{ type: "file", file: { filename: "a.pdf", file_data } }];
    },
    "20 MiB of WAV in chat": () => [inputAudio(wavOf(20 * mib - 44), "wav")],
  },
};
