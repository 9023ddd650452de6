import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { call } from "../../api.ts";
import { bytes } from "../../format.ts";
import { useAction } from "../../hooks.ts";
import { CopyButton } from "../../kit/copy.tsx";
import { DropArea } from "../../kit/drop.tsx";
import { TextField } from "../../kit/form.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { Money } from "../../kit/values.tsx";
import { session } from "../../session.ts";
import type { Model } from "../../types.ts";
import { CopyAs } from "./copy-as.tsx";
import { useWallet } from "./media.tsx";
import { Pay } from "./pay.tsx";
import { present } from "./setting-values.ts";
import { linkTo, useSettings } from "./settings.ts";

interface Transcript {
  text: string;
  usage: { seconds: number; costUsdMicros?: number };
}

/** Transcripts that this page got, newest first. */
const transcripts = signal<readonly { key: number; name: string; transcript: Transcript }[]>([]);
session.subscribe((value) => {
  if (!value) transcripts.value = [];
});

/** The most bytes of a recording, for the API. */
const maxBytes = 25 * 1024 ** 2;
const types = ".mp3,.wav,.flac,.m4a,.mp4,.ogg,.webm,audio/*";

/** The words of a recording. */
export function TranscriptionForm({ model }: { model: Model }) {
  const { settings, set } = useSettings("transcription");
  const wallet = useWallet();
  const [file, setFile] = useState<File | undefined>();
  const fields = present({
    model: model.id,
    language: settings.language,
    prompt: settings.prompt,
  });
  const [isMissing, setMissing] = useState(false);
  const isTooLarge = file !== undefined && file.size > maxBytes;
  const send = useAction(async () => {
    if (!file) return;
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
    form.append("file", file, file.name);
    const asked = { method: "POST", form } as const;
    const transcript = await call<Transcript>("/audio/transcriptions", asked);
    const key = transcripts.value.length;
    transcripts.value = [{ key, name: file.name, transcript }, ...transcripts.value];
    wallet.reload();
  });
  return (
    <>
      <div class="play">
        <DropArea onFiles={([first]) => setFile(first)}>
          <form
            class="card"
            onSubmit={(event) => {
              event.preventDefault();
              setMissing(!file);
              if (file && !isTooLarge) send.run();
            }}
          >
            <Recording file={file} onFile={setFile} isWrong={isTooLarge || (isMissing && !file)} />
            <TextField
              label="Language"
              placeholder="en"
              hint="The language that is spoken. Empty: the model finds out."
              value={settings.language ?? ""}
              onValue={(language) => set({ language })}
            />
            <TextField
              label="Words that may help"
              hint="Names and terms of the recording."
              value={settings.prompt ?? ""}
              onValue={(prompt) => set({ prompt })}
            />
            <ErrorText error={send.error} />
            <Pay wallet={wallet.data} isBusy={send.isBusy} submit="Transcribe" busy="Transcribing…">
              <Money micros={model.pricing?.usdMicrosPerMinute ?? 0} digits="price" /> per minute
            </Pay>
          </form>
        </DropArea>
        <div class="stack results" aria-live="polite">
          {transcripts.value.length === 0 && (
            <Empty title="Nothing transcribed yet">
              <p>Transcripts appear here, with their charge.</p>
            </Empty>
          )}
          {transcripts.value.map(({ key, name, transcript: { text, usage } }) => (
            <article class="card stack" key={key}>
              <header class="row spread">
                <span class="break">{name}</span>
                <span class="muted charge">
                  charged <Money micros={usage.costUsdMicros ?? 0} digits="price" />
                </span>
              </header>
              <p class="said-words">{text}</p>
              <p class="row spread fine">
                <span class="num">{usage.seconds} s</span>
                <CopyButton text={text} label="Copy text" />
              </p>
            </article>
          ))}
        </div>
      </div>
      <CopyAs
        snippet={{ path: "/audio/transcriptions", body: fields, file: file?.name ?? "speech.mp3" }}
        link={linkTo("transcription", model.id, settings)}
      />
    </>
  );
}

function Recording({
  file,
  onFile,
  isWrong,
}: {
  file: File | undefined;
  onFile(file: File | undefined): void;
  /** It is too large, or was not chosen before the form was sent. */
  isWrong: boolean;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <fieldset class="field">
      <legend>Recording</legend>
      <div class="row">
        <button type="button" class="small" onClick={() => input.current?.click()}>
          {file ? "Choose another" : "Choose a file"}
        </button>
        {file && (
          <span class="break">
            {file.name} <span class="muted num">{bytes(file.size)}</span>
          </span>
        )}
      </div>
      <input
        ref={input}
        hidden
        type="file"
        accept={types}
        aria-label="Recording to transcribe"
        onChange={(event) => {
          onFile(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      <p class={isWrong ? "field-error" : "hint"}>
        {isWrong && "A recording is needed: "}MP3, WAV, FLAC, M4A, MP4, OGG or WebM, up to 25 MiB.
        Drop or paste it too.
      </p>
    </fieldset>
  );
}
