// The files beside a message of a chat: how they are added, shown and sent.

import { useRef } from "preact/hooks";
import type { Model } from "../../types.ts";

/** A file of a message. */
export interface Attachment {
  kind: "image" | "pdf" | "audio";
  name: string;
  /** The address that is sent. */
  dataUrl: string;
  /** The address that the page may show. */
  blobUrl: string;
}

/** The most images of `/responses`. */
const maxImages = 20;
/** The most bytes of a message's files together, for the API. */
const maxBytes = 20 * 1024 ** 2;

/** The types of files that messages may have, by the model's `inputModalities`. */
const kinds = {
  image: { types: ["image/jpeg", "image/png"], words: "JPEG, PNG" },
  pdf: { types: ["application/pdf"], words: "PDF" },
  audio: {
    types: ["audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"],
    words: "WAV, MP3",
  },
} as const;
type Kind = keyof typeof kinds;

/** The kinds of files that all these models take. */
export function kindsTaken(models: readonly Model[]): Kind[] {
  return (Object.keys(kinds) as Kind[]).filter((kind) =>
    models.every(({ inputModalities }) => inputModalities?.includes(kind)),
  );
}

/** Adds files to a message. Answers the fault of the first file that is not taken, in words. */
export async function withFiles(
  before: readonly Attachment[],
  files: readonly File[],
  taken: readonly Kind[],
): Promise<{ attachments: Attachment[]; fault?: string }> {
  const attachments = [...before];
  for (const file of files) {
    const kind = taken.find((one) => (kinds[one].types as readonly string[]).includes(file.type));
    const fault = kind ? excessOf(attachments, kind, file) : strangeOf(file, taken);
    if (!kind || fault) return { attachments, fault: fault ?? "" };
    attachments.push(await attachmentOf(file, kind));
  }
  return { attachments };
}

function strangeOf({ name }: File, taken: readonly Kind[]): string {
  const words = taken.map((kind) => kinds[kind].words).join(", ");
  return words
    ? `${name} is none of ${words}.`
    : `${name} was not added: the model takes text alone.`;
}

function excessOf(before: readonly Attachment[], kind: Kind, file: File): string | undefined {
  if (kind === "image" && before.filter((one) => one.kind === kind).length >= maxImages) {
    return `A message has at most ${maxImages} images.`;
  }
  // Four characters of base64 are three bytes.
  const bytes = before.reduce((sum, { dataUrl }) => sum + (dataUrl.length * 3) / 4, file.size);
  return bytes > maxBytes ? "The files of a message have at most 20 MiB together." : undefined;
}

async function attachmentOf(file: File, kind: Kind): Promise<Attachment> {
  const reader = new FileReader();
  const dataUrl = await new Promise<string>((resolve, reject) => {
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return { kind, name: file.name, dataUrl, blobUrl: URL.createObjectURL(file) };
}

/** The parts of a message of `/responses`. */
export function partOf({ kind, name, dataUrl }: Attachment): Record<string, unknown> {
  if (kind === "image") return { type: "input_image", image_url: dataUrl };
  if (kind === "pdf") return { type: "input_file", filename: name, file_data: dataUrl };
  const [head = "", data = ""] = dataUrl.split(",", 2);
  return {
    type: "input_audio",
    input_audio: { data, format: head.includes("wav") ? "wav" : "mp3" },
  };
}

export function AddFiles({
  taken,
  onFiles,
}: {
  taken: readonly Kind[];
  onFiles(files: File[]): void;
}) {
  const input = useRef<HTMLInputElement>(null);
  if (taken.length === 0) return null;
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        {taken.join() === "image" ? "Add images" : "Add files"}
      </button>
      <input
        ref={input}
        hidden
        type="file"
        multiple
        accept={taken.flatMap((kind) => kinds[kind].types).join()}
        aria-label="Files to add"
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          onFiles(files);
        }}
      />
    </>
  );
}

/** The files of a message. */
export function Attachments({
  attachments,
  onAttachments,
}: {
  attachments: readonly Attachment[];
  /** Absent: none can be taken out any more. */
  onAttachments?: (attachments: Attachment[]) => void;
}) {
  return (
    <ul class="thumbs">
      {attachments.map((one) => (
        <li key={one.blobUrl}>
          <Preview of={one} />
          {onAttachments && (
            <button
              type="button"
              class="small"
              aria-label={`Take out ${one.name}`}
              onClick={() => {
                URL.revokeObjectURL(one.blobUrl);
                onAttachments(attachments.filter((other) => other !== one));
              }}
            >
              Remove
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Preview({ of: { kind, name, blobUrl } }: { of: Attachment }) {
  if (kind === "image") return <img src={blobUrl} alt={name} />;
  if (kind === "pdf") {
    return (
      <a class="document" href={blobUrl} target="_blank" rel="noopener">
        {name}
      </a>
    );
  }
  return (
    <>
      {/* biome-ignore lint/a11y/useMediaCaption: it is the reader's own file. */}
      <audio src={blobUrl} controls preload="metadata" aria-label={name} />
      <span class="fine muted">{name}</span>
    </>
  );
}
