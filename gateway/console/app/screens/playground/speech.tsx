import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { call, open, v1 } from "../../api.ts";
import { bytes, count } from "../../format.ts";
import { useAction } from "../../hooks.ts";
import { Select, TextArea, TextField } from "../../kit/form.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { Money, ShortId } from "../../kit/values.tsx";
import { session } from "../../session.ts";
import type { Model } from "../../types.ts";
import { CopyAs } from "./copy-as.tsx";
import { useWallet } from "./media.tsx";
import { Pay } from "./pay.tsx";
import { numberOf, present } from "./setting-values.ts";
import { type Form, linkTo, useSettings } from "./settings.ts";

interface Speech {
  id: string;
  audio: { id: string; sizeBytes: number; durationSeconds: number };
  usage: { characters: number; costUsdMicros: number };
}

/** A speech that this page made. */
interface Spoken {
  key: string;
  text: string;
  voice: string;
  format: string;
  costUsdMicros: number;
  /** Where the page plays it. */
  url: string;
  sizeBytes: number;
  /** Absent where the audio came as bytes alone. */
  id?: string;
  durationSeconds?: number;
}

/** Newest first. */
const spoken = signal<readonly Spoken[]>([]);
/** Addresses of a short sentence in each voice, by model and voice. */
const previews = signal<ReadonlyMap<string, string>>(new Map());

// Another key may sign in to this page.
session.subscribe((value) => {
  if (value) return;
  for (const { url } of spoken.value) URL.revokeObjectURL(url);
  spoken.value = [];
  previews.value = new Map();
});

/** Sent to the API, which answers with the address of an MP3, or with bytes in another format. */
async function speak(
  body: Record<string, unknown>,
  { format, key }: { format: string; key: string },
): Promise<Omit<Spoken, "text" | "voice">> {
  const headers = { "idempotency-key": key };
  if (format === "mp3") {
    const asked = { method: "POST", body, headers } as const;
    const { id, audio, usage } = await call<Speech>("/speech/generations", asked);
    const { sizeBytes, durationSeconds } = audio;
    const url = `${v1}/speech/generations/${id}/files/${audio.id}`;
    return { ...{ key, format, id, url }, sizeBytes, durationSeconds, ...usage };
  }
  const sent = { ...body, response_format: format };
  const answer = await open("/audio/speech", { method: "POST", body: sent, headers });
  const blob = await answer.blob();
  const costUsdMicros = Number(answer.headers.get("x-genmesh-cost-usd-micros"));
  const url = URL.createObjectURL(blob);
  return { key, format, url, sizeBytes: blob.size, costUsdMicros };
}

/** Characters in the service's count: code points, so that an emoji is one. */
const lengthOf = (text: string) => [...text].length;

export function SpeechForm({ model }: { model: Model }) {
  const form = useSettings("speech");
  const { settings, set } = form;
  const wallet = useWallet();
  const voices = (model.voices ?? []) as string[];
  const formats = model.formats ?? ["mp3"];
  const format = formats.find((one) => one === settings.format) ?? "mp3";
  const most = Number(model.maxInputCharacters ?? 4_096);
  const text = settings.input ?? "";
  const voice = voices.includes(settings.voice ?? "") ? settings.voice : voices[0];
  const characters = lengthOf(text);
  const body = present({
    model: model.id,
    input: text,
    voice,
    language: settings.language,
    speed: numberOf(settings.speed),
  });
  const attempt = useRef<{ text: string; id: string } | undefined>(undefined);
  const send = useAction(async () => {
    const sent = JSON.stringify([body, format]);
    if (attempt.current?.text !== sent) attempt.current = { text: sent, id: crypto.randomUUID() };
    const made = await speak(body, { format, key: attempt.current.id });
    attempt.current = undefined;
    spoken.value = [{ ...made, text, voice: voice ?? "" }, ...spoken.value];
    wallet.reload();
  });
  return (
    <>
      <div class="play">
        <form
          class="card"
          onSubmit={(event) => {
            event.preventDefault();
            send.run();
          }}
        >
          <TextArea
            label="Text"
            required
            rows={7}
            maxLength={most}
            hint={`${count(characters)} of ${count(most)} characters`}
            value={text}
            onValue={(input) => set({ input })}
          />
          <How form={form} model={model} voice={voice ?? ""} format={format} />
          <VoicePreview model={model} voice={voice ?? ""} onHeard={wallet.reload} />
          <ErrorText error={send.error} />
          <Pay wallet={wallet.data} isBusy={send.isBusy} submit="Speak" busy="Speaking…">
            <Money micros={priceOf(model, characters)} digits="price" />
          </Pay>
        </form>
        <AllSpoken />
      </div>
      <CopyAs
        snippet={{ path: "/audio/speech", body: { ...body, response_format: format } }}
        link={linkTo("speech", model.id, settings)}
      />
    </>
  );
}

/** Voice, format, language and speed. */
function How({
  form: { settings, set },
  model,
  voice,
  format,
}: {
  form: Form;
  model: Model;
  voice: string;
  format: string;
}) {
  const formats = model.formats ?? ["mp3"];
  const languages = (model.languages ?? []) as string[];
  const speed = (model.speed ?? { min: 0.25, max: 4 }) as { min: number; max: number };
  return (
    <div class="two">
      <Select
        label="Voice"
        value={voice}
        onValue={(value) => set({ voice: value })}
        choices={(model.voices ?? []) as string[]}
      />
      {formats.length > 1 && (
        <Select
          label="Format"
          value={format}
          onValue={(value) => set({ format: value })}
          choices={formats.map((value) => ({ value, label: value.toUpperCase() }))}
        />
      )}
      {languages.length > 0 && (
        <Select
          label="Language"
          value={settings.language ?? ""}
          onValue={(language) => set({ language })}
          choices={[{ value: "", label: "As the text" }, ...languages]}
        />
      )}
      <TextField
        label="Speed"
        type="number"
        min={speed.min}
        max={speed.max}
        step="0.05"
        hint={`${speed.min} to ${speed.max}; 1 is normal`}
        value={settings.speed ?? ""}
        placeholder="1"
        onValue={(value) => set({ speed: value })}
      />
    </div>
  );
}

/** USD micros, rounded up. */
function priceOf({ pricing }: Model, characters: number): number {
  const perMillion = BigInt(pricing?.usdMicrosPerMillionCharacters ?? 0);
  return Number((BigInt(characters) * perMillion + 999_999n) / 1_000_000n);
}

const sample = "Hello. This is my voice.";

/** A short sentence in the chosen voice. Each voice is paid for once a page. */
function VoicePreview({ model, voice, onHeard }: { model: Model; voice: string; onHeard(): void }) {
  const name = `${model.id} ${voice}`;
  const url = previews.value.get(name);
  const hear = useAction(async () => {
    const body = { model: model.id, input: sample, voice };
    const made = await speak(body, { format: "mp3", key: crypto.randomUUID() });
    previews.value = new Map([...previews.value, [name, made.url]]);
    onHeard();
  });
  return (
    <div class="stack">
      {url ? (
        // biome-ignore lint/a11y/useMediaCaption: the sentence is always the same.
        <audio src={url} controls autoPlay aria-label={`The voice ${voice}`} />
      ) : (
        <div class="row">
          <button type="button" class="small" disabled={hear.isBusy} onClick={() => hear.run()}>
            {hear.isBusy ? "Speaking…" : `Hear ${voice}`}
          </button>
          <span class="fine muted">
            A short sentence for <Money micros={priceOf(model, lengthOf(sample))} digits="price" />
          </span>
        </div>
      )}
      <ErrorText error={hear.error} />
    </div>
  );
}

function AllSpoken() {
  return (
    <div class="stack results" aria-live="polite">
      {spoken.value.length === 0 && (
        <Empty title="No speech yet">
          <p>Speech that you generate appears here, with its charge.</p>
        </Empty>
      )}
      {spoken.value.map((one) => (
        <OneSpoken key={one.key} spoken={one} />
      ))}
    </div>
  );
}

function OneSpoken({ spoken }: { spoken: Spoken }) {
  const { id, url, text, voice, format, durationSeconds } = spoken;
  const name = id ? `Speech ${id}` : `Speech in ${format.toUpperCase()}`;
  const facts = [
    voice,
    format.toUpperCase(),
    durationSeconds && `${Math.round(durationSeconds * 10) / 10} s`,
    bytes(spoken.sizeBytes),
  ];
  return (
    <article class="card stack">
      <header class="row spread">
        {id ? <ShortId id={id} /> : <span class="muted">Kept in this page alone</span>}
        <span class="muted">
          charged <Money micros={spoken.costUsdMicros} digits="price" />
        </span>
      </header>
      <p class="prompt">{text}</p>
      {format !== "pcm" && (
        // biome-ignore lint/a11y/useMediaCaption: the text stands above it.
        <audio src={url} controls preload="metadata" aria-label={name} />
      )}
      <p class="row spread fine">
        <span class="num">{facts.filter(Boolean).join(" · ")}</span>
        <a
          href={id ? `${url}?download=1` : url}
          download={`speech.${format}`}
          aria-label={`Download ${name}`}
        >
          Download
        </a>
      </p>
    </article>
  );
}
