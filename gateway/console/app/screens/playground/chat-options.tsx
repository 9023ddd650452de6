import { count } from "../../format.ts";
import { Checkbox, Field, Select, TextArea, TextField } from "../../kit/form.tsx";
import type { Model } from "../../types.ts";
import { faultsOf, maxStops, takesTools } from "./chat-request.ts";
import type { Form } from "./settings.ts";

const exampleTools = `[
  {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {
      "type": "object",
      "properties": { "city": { "type": "string" } },
      "required": ["city"]
    }
  }
]`;

export function Options({
  form,
  model,
  others,
  isRunning,
  onCompare,
}: {
  form: Form;
  model: Model;
  /** Models that may answer beside this one. */
  others: readonly Model[];
  /** An answer is coming. */
  isRunning: boolean;
  /** "": none any more. */
  onCompare(id: string): void;
}) {
  const { settings, set } = form;
  const faults = faultsOf(model, settings);
  const efforts = model.reasoningEfforts ?? [];
  return (
    <section class="card stack options" aria-label="Settings">
      {others.length > 0 && (
        <Select
          label="Compare with"
          disabled={isRunning}
          value={settings.versus ?? ""}
          onValue={onCompare}
          choices={[
            { value: "", label: "No other model" },
            ...others.map(({ id, name }) => ({ value: id, label: name || id })),
          ]}
        />
      )}
      <TextArea
        label="Instructions"
        rows={4}
        placeholder="How the model should answer"
        value={settings.instructions ?? ""}
        onValue={(instructions) => set({ instructions })}
      />
      {efforts.length > 0 && (
        <Select
          label="Reasoning"
          value={settings.effort ?? ""}
          onValue={(effort) => set({ effort })}
          choices={[{ value: "", label: "Model's default" }, ...efforts]}
        />
      )}
      <TextField
        label="Max output tokens"
        type="number"
        min="1"
        {...(model.maxOutputTokens && { max: model.maxOutputTokens })}
        step="1"
        placeholder={model.maxOutputTokens ? String(model.maxOutputTokens) : ""}
        hint={
          model.maxOutputTokens ? `Tokens, at most ${count(model.maxOutputTokens)}.` : "Tokens."
        }
        value={settings.maxOutput ?? ""}
        onValue={(maxOutput) => set({ maxOutput })}
      />
      {takesTools(model) && (
        <JsonField
          label="Tools"
          hint="A JSON list, as the API takes it."
          error={faults.tools}
          value={settings.tools ?? ""}
          example={exampleTools}
          onValue={(value) => set({ tools: value })}
        />
      )}
      <More form={form} model={model} />
      <Checkbox
        label="Stream the answer"
        checked={settings.stream !== "no"}
        onChecked={(checked) => set({ stream: checked ? "" : "no" })}
      />
    </section>
  );
}

const exampleSchema = `{
  "type": "object",
  "properties": { "answer": { "type": "string" } },
  "required": ["answer"],
  "additionalProperties": false
}`;

/** How the model chooses its words, and the form of its answer. */
function More({ form: { settings, set }, model }: { form: Form; model: Model }) {
  const faults = faultsOf(model, settings);
  const { temperature, topP, seed, stop, schema } = settings;
  return (
    <details open={Boolean(temperature || topP || seed || stop || schema)}>
      <summary>Sampling and format</summary>
      <div class="stack more">
        <div class="two tight">
          <TextField
            label="Temperature"
            type="number"
            min="0"
            max="2"
            step="0.05"
            hint="0 to 2"
            value={temperature ?? ""}
            onValue={(value) => set({ temperature: value })}
          />
          <TextField
            label="Top P"
            type="number"
            min="0"
            max="1"
            step="0.01"
            hint="0 to 1"
            value={topP ?? ""}
            onValue={(value) => set({ topP: value })}
          />
        </div>
        <TextField
          label="Seed"
          type="number"
          step="1"
          hint="With the same seed a model may answer the same."
          value={seed ?? ""}
          onValue={(value) => set({ seed: value })}
        />
        <TextArea
          label="Stop"
          rows={2}
          hint={`The answer ends before one of these: one a line, up to ${maxStops}. They are sent to Chat Completions.`}
          {...(faults.stop && { error: faults.stop })}
          value={stop ?? ""}
          onValue={(value) => set({ stop: value })}
        />
        <JsonField
          label="JSON schema of the answer"
          hint="The answer is JSON of this form."
          error={faults.schema}
          value={schema ?? ""}
          example={exampleSchema}
          onValue={(value) => set({ schema: value })}
        />
      </div>
    </details>
  );
}

/** A field for JSON, with an example while it is empty. */
function JsonField({
  label,
  hint,
  error,
  value,
  example,
  onValue,
}: {
  label: string;
  hint: string;
  error: string | undefined;
  value: string;
  example: string;
  onValue(value: string): void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(tie) => (
        <>
          <textarea
            {...tie}
            class="json"
            rows={value ? 10 : 2}
            spellcheck={false}
            value={value}
            onInput={(event) => onValue(event.currentTarget.value)}
          />
          {!value && (
            <button type="button" class="small" onClick={() => onValue(example)}>
              Insert an example
            </button>
          )}
        </>
      )}
    </Field>
  );
}
