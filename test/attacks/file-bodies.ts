import { pagesOf, pdfOf, wavOf } from "../../services/text/measuring/samples.fixture.ts";
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
/** A page with a picture of so many bytes. */
const withPicture = (picture: Buffer) =>
  pdfOf({
    ...pagesOf(["x"]),
    5: { value: "<</Subtype/Image/Filter/DCTDecode>>", stream: picture },
  });
const ofObjects = (count: number) =>
  Buffer.from(`%PDF-1.7\n${Array.from({ length: count }, (_, at) => `${at} 0 obj 1`).join("\n")}`);
const shortFrames = () => {
  const frame = Buffer.alloc(24);
  frame.writeUInt32BE(0xfff314c4);
  return Buffer.alloc(20 * mib, frame);
};

/** Contents of a user's message that are as large as files may be, by the API that takes them. */
export const largeFiles: Record<"responses" | "chat", Record<string, () => object[]>> = {
  responses: {
    "a PDF of 19 MiB": () => [inputFile(withPicture(Buffer.alloc(19 * mib, 0xa5)))],
    "a PDF of 900,000 objects": () => [inputFile(ofObjects(900_000))],
    "20 MiB of short MP3 frames": () => [inputAudio(shortFrames(), "mp3")],
    "20 sounds": () => Array.from({ length: 20 }, () => inputAudio(sampleMp3(60), "mp3")),
  },
  chat: {
    "a PDF of 19 MiB in chat": () => {
      const file_data = uriOf(withPicture(Buffer.alloc(19 * mib, 0xa5)));
      return [{ type: "file", file: { filename: "a.pdf", file_data } }];
    },
    "20 MiB of WAV in chat": () => [inputAudio(wavOf(20 * mib - 44), "wav")],
  },
};
