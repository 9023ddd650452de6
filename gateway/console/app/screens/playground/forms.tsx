import { count } from "../../format.ts";
import { Segments, Select, TextArea, TextField } from "../../kit/form.tsx";
import type { Model, VideoOption } from "../../types.ts";
import { Mask, maskIdOf } from "./mask.tsx";
import { MediaPlayground } from "./media.tsx";
import { References, useReferences } from "./references.tsx";
import { idsOf, numberOf, present } from "./setting-values.ts";
import { type Form, useSettings } from "./settings.ts";

/** A choice that the reader may leave to the service. */
const optional = (choices: readonly string[] | undefined) => [
  { value: "", label: "Model's default" },
  ...(choices ?? []),
];

function Prompt({ form, model }: { form: Form; model: Model }) {
  const { settings, set } = form;
  return (
    <TextArea
      label="Prompt"
      required
      rows={5}
      {...(model.maxPromptCharacters && { maxLength: model.maxPromptCharacters })}
      placeholder="Subject, scene, light, mood"
      value={settings.prompt ?? ""}
      onValue={(prompt) => set({ prompt })}
    />
  );
}

/** Does a model take a parameter that some models lack? Where its document does not say, yes. */
function takes(model: Model, parameter: "negativePrompt" | "seed"): boolean {
  const { optionalParameters } = model;
  return !Array.isArray(optionalParameters) || optionalParameters.includes(parameter);
}

/** Settings that few readers need. */
function More({ form: { settings, set }, model }: { form: Form; model: Model }) {
  const hasNegative = takes(model, "negativePrompt");
  const hasSeed = takes(model, "seed");
  if (!hasNegative && !hasSeed) return null;
  return (
    <details open={Boolean(settings.negativePrompt || settings.seed)}>
      <summary>More settings</summary>
      <div class="stack more">
        {hasNegative && (
          <TextField
            label="Negative prompt"
            hint="Things to leave out."
            value={settings.negativePrompt ?? ""}
            onValue={(negativePrompt) => set({ negativePrompt })}
          />
        )}
        {hasSeed && (
          <TextField
            label="Seed"
            hint="The same request with the same seed may be made again."
            type="number"
            min="0"
            max="2147483647"
            step="1"
            value={settings.seed ?? ""}
            onValue={(seed) => set({ seed })}
          />
        )}
      </div>
    </details>
  );
}

const moreOf = ({ settings }: Form, model: Model) => ({
  negativePrompt: takes(model, "negativePrompt") ? settings.negativePrompt : undefined,
  seed: takes(model, "seed") ? numberOf(settings.seed) : undefined,
});

/** The first reference as `input_reference`, the later ones beside it. */
function referencesOf(ids: readonly string[]) {
  const [first, ...rest] = ids;
  return {
    input_reference: first && { file_id: first },
    referenceFileIds: rest.length > 0 ? rest : undefined,
  };
}

/** The shape of images and their number. */
function Shape({
  form: { settings, set },
  model,
  most,
}: {
  form: Form;
  model: Model;
  /** Images of one request. */
  most: number;
}) {
  const shape = shapeOf(settings);
  return (
    <>
      <div class="field">
        <span class="label">Shape</span>
        <Segments
          label="Shape by"
          value={shape}
          onValue={(value) => set({ shape: value })}
          choices={[
            { value: "size", label: "By size" },
            { value: "ratio", label: "By ratio" },
          ]}
        />
      </div>
      <div class="two">
        {shape === "size" ? (
          <Select
            label="Size"
            value={settings.size ?? ""}
            onValue={(size) => set({ size })}
            choices={optional(model.sizes)}
          />
        ) : (
          <>
            <Select
              label="Aspect ratio"
              value={settings.aspectRatio ?? ""}
              onValue={(aspectRatio) => set({ aspectRatio })}
              choices={optional(model.availableAspectRatios)}
            />
            <Select
              label="Resolution"
              value={settings.resolution ?? ""}
              onValue={(resolution) => set({ resolution })}
              choices={optional(model.resolutions)}
            />
          </>
        )}
        <TextField
          label="Images"
          type="number"
          min="1"
          max={most}
          step="1"
          hint={`1 to ${most}`}
          value={settings.n ?? "1"}
          onValue={(value) => set({ n: value })}
        />
      </div>
    </>
  );
}

const shapeOf = ({ shape }: Form["settings"]) => (shape === "ratio" ? "ratio" : "size");

export function ImageForm({ model }: { model: Model }) {
  const form = useSettings("image");
  const { settings, set } = form;
  const most = model.maxImages ?? 1;
  const n = Math.min(Math.max(1, numberOf(settings.n) ?? 1), most);
  const shape = shapeOf(settings);
  const maxReferences = model.maxReferences ?? 0;
  const ids = idsOf(settings.refs).slice(0, maxReferences);
  const mask = maskIdOf(form, model, ids);
  const body = present({
    model: model.id,
    prompt: settings.prompt,
    n: n === 1 ? undefined : n,
    size: shape === "size" ? settings.size : undefined,
    aspectRatio: shape === "ratio" ? settings.aspectRatio : undefined,
    resolution: shape === "ratio" ? settings.resolution : undefined,
    ...referencesOf(ids),
    mask: mask && { file_id: mask },
    ...moreOf(form, model),
  });
  const references = useReferences({
    ids,
    max: maxReferences,
    onIds: (refs) => set({ refs: refs.join() }),
  });
  const addReference = (id: string) => set({ refs: [...ids, id].slice(-maxReferences).join() });
  return (
    <MediaPlayground
      model={model}
      kind="image"
      settings={settings}
      order={{ path: "/images/generations", body, credits: (model.creditPrice ?? 0) * n }}
      onSettings={form.replace}
      {...(maxReferences > 0 && { onReference: addReference, onFiles: references.upload.run })}
    >
      <Prompt form={form} model={model} />
      <Shape form={form} model={model} most={most} />
      {maxReferences > 0 && (
        <References
          of={references}
          hint={`Up to ${maxReferences}: JPEG, PNG or WebP, 20 MiB each.`}
        />
      )}
      <Mask form={form} model={model} ids={ids} />
      <More form={form} model={model} />
    </MediaPlayground>
  );
}

/** The offered rows of a mode. The chosen row is used where it is among them, otherwise the first, as in the service. */
function rowsOf(model: Model, mode: "t2v" | "i2v", settings: Form["settings"]) {
  const rows = (model.videoOptions ?? []).filter((row) => row.modes.includes(mode));
  const seconds = numberOf(settings.seconds);
  const fits = (row: VideoOption) =>
    (seconds === undefined || row.durationSeconds === seconds) &&
    (!settings.resolution || row.resolution === settings.resolution);
  return { rows, row: rows.find(fits) };
}

export function VideoForm({ model }: { model: Model }) {
  const form = useSettings("video");
  const { settings, set } = form;
  const maxReferences = model.maxReferences ?? 0;
  const ids = idsOf(settings.refs).slice(0, maxReferences);
  const mode = ids.length > 0 ? "i2v" : "t2v";
  const { rows, row } = rowsOf(model, mode, settings);
  const durations = [...new Set(rows.map((one) => String(one.durationSeconds)))];
  const seconds = row ? String(row.durationSeconds) : (settings.seconds ?? "");
  const resolutions = [...new Set(rows.map((one) => one.resolution))];
  const priceOf = (resolution: string) =>
    rows.find((one) => String(one.durationSeconds) === seconds && one.resolution === resolution);
  const body = present({
    model: model.id,
    prompt: settings.prompt,
    seconds: row?.durationSeconds,
    resolution: row?.resolution,
    aspectRatio: settings.aspectRatio,
    ...referencesOf(ids),
    ...moreOf(form, model),
  });
  const references = useReferences({
    ids,
    max: maxReferences,
    onIds: (refs) => set({ refs: refs.join() }),
  });
  const takesReferences = model.i2vEnabled && maxReferences > 0;
  const runtime = model.approxRuntimeSeconds;
  return (
    <MediaPlayground
      model={model}
      kind="video"
      settings={settings}
      order={{ path: "/videos/generations", body, credits: row?.credits }}
      {...(takesReferences && { onFiles: references.upload.run })}
    >
      <Prompt form={form} model={model} />
      <div class="two">
        <Select
          label="Duration"
          value={seconds}
          onValue={(value) => set({ seconds: value })}
          choices={durations.map((value) => ({ value, label: `${value} seconds` }))}
        />
        <Select
          label="Resolution"
          value={row?.resolution ?? settings.resolution ?? ""}
          onValue={(resolution) => set({ resolution })}
          choices={resolutions.map((value) => {
            const price = priceOf(value)?.credits;
            return {
              value,
              label: `${value} · ${price === undefined ? "not at this duration" : `${count(price)} credits`}`,
            };
          })}
        />
        <Select
          label="Aspect ratio"
          value={settings.aspectRatio ?? ""}
          onValue={(aspectRatio) => set({ aspectRatio })}
          choices={optional(model.availableAspectRatios)}
        />
      </div>
      {takesReferences && (
        <References
          of={references}
          hint={
            model.firstLastFrame
              ? "The first is the first frame, a second the last one."
              : `Up to ${maxReferences}; with one, the video begins from it.`
          }
        />
      )}
      <More form={form} model={model} />
      {typeof runtime === "number" && (
        <p class="hint">
          {mode === "t2v" ? "From text alone" : "From an image"}; takes about {count(runtime)}{" "}
          seconds.
        </p>
      )}
    </MediaPlayground>
  );
}

export function MusicForm({ model }: { model: Model }) {
  const form = useSettings("music");
  const { settings, set } = form;
  const mode = settings.mode === "lyrics" ? "lyrics" : "instrumental";
  const body = present({
    model: model.id,
    mode,
    title: settings.title,
    description: settings.description,
    lyrics: mode === "lyrics" ? settings.lyrics : undefined,
    ...moreOf(form, model),
  });
  return (
    <MediaPlayground
      model={model}
      kind="music"
      settings={settings}
      order={{ path: "/music/generations", body, credits: model.creditPrice }}
    >
      <div class="field">
        <span class="label">Mode</span>
        <Segments
          label="Mode"
          value={mode}
          onValue={(value) => set({ mode: value })}
          choices={[
            { value: "instrumental", label: "Instrumental" },
            { value: "lyrics", label: "With lyrics" },
          ]}
        />
      </div>
      <TextField
        label="Title"
        required
        value={settings.title ?? ""}
        onValue={(title) => set({ title })}
      />
      <TextArea
        label="Description"
        rows={3}
        hint="Mood, style, instruments."
        value={settings.description ?? ""}
        onValue={(description) => set({ description })}
      />
      {mode === "lyrics" && (
        <TextArea
          label="Lyrics"
          required
          rows={8}
          value={settings.lyrics ?? ""}
          onValue={(lyrics) => set({ lyrics })}
        />
      )}
      <More form={form} model={model} />
    </MediaPlayground>
  );
}
