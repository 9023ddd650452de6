// The screen of the playground. Its forms are in the folder of this name, one for each kind of model.

import type { VNode } from "preact";
import { useApi, useFilters } from "../hooks.ts";
import { Segments, Select } from "../kit/form.tsx";
import { Page } from "../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { triedKinds } from "../model-kinds.ts";
import type { List, Model, ModelKind } from "../types.ts";
import { Chat } from "./playground/chat.tsx";
import { EmbeddingForm } from "./playground/embeddings.tsx";
import { ImageForm, MusicForm, VideoForm } from "./playground/forms.tsx";
import { SpeechForm } from "./playground/speech.tsx";
import { TranscriptionForm } from "./playground/transcription.tsx";

const forms: Partial<
  Record<ModelKind, (props: { model: Model; models: readonly Model[] }) => VNode | null>
> = {
  chat: Chat,
  image: ImageForm,
  video: VideoForm,
  music: MusicForm,
  speech: SpeechForm,
  embedding: EmbeddingForm,
  transcription: TranscriptionForm,
};

/** A form for every kind of model, with its limits and options, its price before a request, and its charge after it. */
export function Playground() {
  const loaded = useApi<List<Model>>("/models");
  const { query, set } = useFilters();
  const all = loaded.data?.data;
  const open = triedKinds().filter(({ value }) => !all || all.some((one) => one.kind === value));
  const kind = (open.find(({ value }) => value === query.kind) ?? open[0])?.value;
  const models = all?.filter((one) => one.kind === kind);
  const model =
    models?.find(({ id }) => id === query.model) ??
    models?.find((one) => one.default) ??
    models?.[0];
  const Form = kind && forms[kind];
  return (
    <Page
      title="Playground"
      lead={model?.description ?? "Try a model with its own limits, options and prices."}
    >
      <div class="filters">
        <Segments
          label="Kind of model"
          value={kind ?? ""}
          onValue={(value) => set({ kind: value, model: undefined })}
          choices={open}
        />
        {models && models.length > 0 && (
          <Select
            label="Model"
            value={model?.id ?? ""}
            onValue={(id) => set({ kind, model: id })}
            choices={models.map(({ id, name }) => ({ value: id, label: name || id }))}
          />
        )}
      </div>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.data && !loaded.error && <Waiting lines={8} />}
      {(models?.length === 0 || (loaded.data && !kind)) && (
        <Empty title="No model of this kind">
          <p>The operator's catalog offers none, or your key may not use it.</p>
        </Empty>
      )}
      {model && Form && <Form key={kind} model={model} models={models ?? []} />}
    </Page>
  );
}
