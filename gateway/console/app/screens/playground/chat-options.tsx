import { count } from "../../format.ts";
import { Checkbox, Field, Select, TextArea, TextField } from "../../kit/form.tsx";
import type { Model } from "../../types.ts";
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

export function toolsOf(
  model: Model,
  text: string | undefined,
): { list?: unknown[]; error?: string } {
  if (!text?.trim() || !takesTools(model)) return {};
  try {
    const list = JSON.parse(text);
    if (!Array.isArray(list)) return { error: "A list of tools begins with [ and ends with ]." };
    return list.length > 0 ? { list } : {};
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
}

function takesTools({ tools }: Model): boolean {
  return Array.isArray(tools) ? tools.length > 0 : tools === true;
}

export function Options({
  form: { settings, set },
  model,
  toolsError,
}: {
  form: Form;
  model: Model;
  toolsError: string | undefined;
}) {
  const efforts = model.reasoningEfforts ?? [];
  return (
    <section class="card stack options" aria-label="Settings">
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
        label="Most output"
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
        <Field label="Tools" hint="A JSON list, as the API takes it." error={toolsError}>
          {(tie) => (
            <>
              <textarea
                {...tie}
                class="json"
                rows={settings.tools ? 10 : 2}
                spellcheck={false}
                value={settings.tools ?? ""}
                onInput={(event) => set({ tools: event.currentTarget.value })}
              />
              {!settings.tools && (
                <button type="button" class="small" onClick={() => set({ tools: exampleTools })}>
                  Insert an example
                </button>
              )}
            </>
          )}
        </Field>
      )}
      <Checkbox
        label="Stream the answer"
        checked={settings.stream !== "no"}
        onChecked={(checked) => set({ stream: checked ? "" : "no" })}
      />
    </section>
  );
}
