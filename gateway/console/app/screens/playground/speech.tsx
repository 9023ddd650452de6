import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { call, v1 } from "../../api.ts";
import { bytes, count } from "../../format.ts";
import { useAction } from "../../hooks.ts";
import { Select, TextArea, TextField } from "../../kit/form.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { Money, ShortId } from "../../kit/values.tsx";
import type { Model } from "../../types.ts";
import { CopyAs } from "./copy-as.tsx";
import { useWallet } from "./media.tsx";
import { linkTo, numberOf, present, useSettings } from "./settings.ts";

interface Speech {
  id: string;
  audio: { id: string; sizeBytes: number; durationSeconds: number };
  usage: { characters: number; costUsdMicros: number };
}

/** Speeches that this page made, newest first. */
const spoken = signal<readonly { speech: Speech; text: string; voice: string }[]>([]);

/** Characters in the service's count: code points, so that an emoji is one. */
const lengthOf = (text: string) => [...text].length;

export function SpeechForm({ model }: { model: Model }) {
  const { settings, set } = useSettings("speech");
  const wallet = useWallet();
  const voices = (model.voices ?? []) as string[];
  const languages = (model.languages ?? []) as string[];
  const speed = (model.speed ?? { min: 0.25, max: 4 }) as { min: number; max: number };
  const most = Number(model.maxInputCharacters ?? 4_096);
  const text = settings.input ?? "";
  const voice = voices.includes(settings.voice ?? "") ? settings.voice : voices[0];
  const characters = lengthOf(text);
  const perMillion = BigInt(model.pricing?.usdMicrosPerMillionCharacters ?? 0);
  const cost = Number((BigInt(characters) * perMillion + 999_999n) / 1_000_000n);
  const body = present({
    model: model.id,
    input: text,
    voice,
    language: settings.language,
    speed: numberOf(settings.speed),
  });
  const attempt = useRef<{ text: string; id: string } | undefined>(undefined);
  const send = useAction(async () => {
    const sent = JSON.stringify(body);
    if (attempt.current?.text !== sent) attempt.current = { text: sent, id: crypto.randomUUID() };
    const headers = { "idempotency-key": attempt.current.id };
    const speech = await call<Speech>("/speech/generations", { method: "POST", body, headers });
    attempt.current = undefined;
    spoken.value = [{ speech, text, voice: voice ?? "" }, ...spoken.value];
    wallet.reload();
  });
  const spendable = wallet.data?.spendableUsdMicros;
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
          <div class="two">
            <Select
              label="Voice"
              value={voice ?? ""}
              onValue={(value) => set({ voice: value })}
              choices={voices}
            />
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
          <ErrorText error={send.error} />
          <div class="pay">
            <p>
              <strong>
                <Money micros={cost} digits="price" />
              </strong>
              {spendable !== undefined && (
                <span class="sub">
                  of <Money micros={spendable} /> that can be spent
                </span>
              )}
            </p>
            <button type="submit" class="primary" disabled={send.isBusy}>
              {send.isBusy ? "Speaking…" : "Speak"}
            </button>
          </div>
        </form>
        <AllSpoken />
      </div>
      <CopyAs
        snippet={{ path: "/speech/generations", body }}
        link={linkTo("speech", model.id, settings)}
      />
    </>
  );
}

function AllSpoken() {
  return (
    <div class="stack results" aria-live="polite">
      {spoken.value.length === 0 && (
        <Empty title="Nothing spoken yet">
          <p>What you have spoken is here to listen to, with what it cost.</p>
        </Empty>
      )}
      {spoken.value.map((one) => (
        <Spoken key={one.speech.id} {...one} />
      ))}
    </div>
  );
}

function Spoken({ speech, text, voice }: { speech: Speech; text: string; voice: string }) {
  const { id, audio, usage } = speech;
  const url = `${v1}/speech/generations/${id}/files/${audio.id}`;
  return (
    <article class="card stack">
      <header class="row spread">
        <ShortId id={id} />
        <span class="muted">
          charged <Money micros={usage.costUsdMicros} digits="price" />
        </span>
      </header>
      <p class="prompt">{text}</p>
      {/* biome-ignore lint/a11y/useMediaCaption: the text stands above it. */}
      <audio src={url} controls preload="metadata" aria-label={`Speech ${id}`} />
      <p class="row spread fine">
        <span class="num">
          {voice} · {Math.round(audio.durationSeconds * 10) / 10} s · {bytes(audio.sizeBytes)}
        </span>
        <a href={`${url}?download=1`} download aria-label={`Download ${id}`}>
          Download
        </a>
      </p>
    </article>
  );
}
