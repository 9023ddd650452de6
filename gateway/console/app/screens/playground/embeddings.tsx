// The playground of embedding models.

import { signal } from "@preact/signals";
import { call } from "../../api.ts";
import { count } from "../../format.ts";
import { useAction } from "../../hooks.ts";
import { CopyButton } from "../../kit/copy.tsx";
import { TextArea, TextField } from "../../kit/form.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { Money } from "../../kit/values.tsx";
import { session } from "../../session.ts";
import type { Model } from "../../types.ts";
import { CopyAs } from "./copy-as.tsx";
import { useWallet } from "./media.tsx";
import { Pay } from "./pay.tsx";
import { numberOf, present } from "./setting-values.ts";
import { linkTo, useSettings } from "./settings.ts";

interface Answer {
  data: { index: number; embedding: number[] }[];
  usage: { prompt_tokens: number; costUsdMicros?: number };
}

interface Embedded {
  key: number;
  inputs: string[];
  vectors: number[][];
  usage: Answer["usage"];
}

/** Texts that this page had embedded, newest first. */
const embedded = signal<readonly Embedded[]>([]);
session.subscribe((value) => {
  if (!value) embedded.value = [];
});

/** A text for each line, and how near they are to each other. */
export function EmbeddingForm({ model }: { model: Model }) {
  const { settings, set } = useSettings("embedding");
  const wallet = useWallet();
  const inputs = (settings.input ?? "").split("\n").filter((line) => line.trim() !== "");
  const most = Number(model.maxInputs ?? Number.POSITIVE_INFINITY);
  const tooMany = inputs.length > most ? `At most ${count(most)} lines.` : undefined;
  const body = present({
    model: model.id,
    input: inputs.length === 1 ? inputs[0] : inputs,
    dimensions: numberOf(settings.dimensions),
  });
  const send = useAction(async () => {
    const { data, usage } = await call<Answer>("/embeddings", { method: "POST", body });
    const vectors = [...data].sort((one, other) => one.index - other.index);
    const made = { inputs, usage, vectors: vectors.map(({ embedding }) => embedding) };
    embedded.value = [{ key: embedded.value.length, ...made }, ...embedded.value];
    wallet.reload();
  });
  return (
    <>
      <div class="play">
        <form
          class="card"
          onSubmit={(event) => {
            event.preventDefault();
            if (inputs.length > 0 && !tooMany) send.run();
          }}
        >
          <TextArea
            label="Texts"
            required
            rows={7}
            hint="One a line."
            error={tooMany}
            value={settings.input ?? ""}
            onValue={(input) => set({ input })}
          />
          <TextField
            label="Dimensions"
            type="number"
            min="1"
            step="1"
            placeholder="Model's default"
            hint="Numbers of a vector, where the model can choose."
            value={settings.dimensions ?? ""}
            onValue={(dimensions) => set({ dimensions })}
          />
          <ErrorText error={send.error} />
          <Pay wallet={wallet.data} isBusy={send.isBusy} submit="Embed" busy="Embedding…">
            <Money micros={model.pricing?.inputUsdMicrosPerMillionTokens ?? 0} digits="price" /> per
            million tokens
          </Pay>
        </form>
        <div class="stack results" aria-live="polite">
          {embedded.value.length === 0 && (
            <Empty title="Nothing embedded yet">
              <p>Vectors are shown here, with how near the texts are to each other.</p>
            </Empty>
          )}
          {embedded.value.map((one) => (
            <Result key={one.key} of={one} />
          ))}
        </div>
      </div>
      <CopyAs
        snippet={{ path: "/embeddings", body }}
        link={linkTo("embedding", model.id, settings)}
      />
    </>
  );
}

/** The first numbers of a vector that are shown. */
const shownNumbers = 6;
/** More texts than these make a table of likeness too large to read. */
const mostCompared = 8;

function Result({ of: { inputs, vectors, usage } }: { of: Embedded }) {
  return (
    <article class="card stack">
      <header class="row spread">
        <span class="num">
          {count(vectors.length)} {vectors.length === 1 ? "vector" : "vectors"} of{" "}
          {count(vectors[0]?.length ?? 0)} numbers · {count(usage.prompt_tokens)} tokens
        </span>
        <span class="muted charge">
          charged <Money micros={usage.costUsdMicros ?? 0} digits="price" />
        </span>
      </header>
      {vectors.length > 1 && vectors.length <= mostCompared && (
        <Likeness inputs={inputs} vectors={vectors} />
      )}
      <ol class="vectors">
        {inputs.map((input, place) => (
          <li key={place}>
            <p class="prompt">{input}</p>
            <p class="row spread">
              <code class="num wraps">
                {(vectors[place] ?? [])
                  .slice(0, shownNumbers)
                  .map((value) => value.toFixed(4))
                  .join(", ")}
                , …
              </code>
              <CopyButton text={JSON.stringify(vectors[place])} label="Copy vector" />
            </p>
          </li>
        ))}
      </ol>
    </article>
  );
}

/** The cosine of each two vectors: 1 for texts of one meaning. */
function Likeness({ inputs, vectors }: Pick<Embedded, "inputs" | "vectors">) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach content that scrolls.
    <div class="wide-part" tabIndex={0}>
      <table>
        <caption class="unseen">Likeness of the texts, from -1 to 1</caption>
        <thead>
          <tr>
            <th scope="col">Likeness</th>
            {inputs.map((_, place) => (
              <th key={place} scope="col" class="numeric">
                {place + 1}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {vectors.map((one, row) => (
            <tr key={row}>
              <th scope="row">{row + 1}</th>
              {vectors.map((other, place) => (
                <td key={place} class="numeric num">
                  {cosine(one, other).toFixed(3)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cosine(one: readonly number[], other: readonly number[]): number {
  const product = (left: readonly number[], right: readonly number[]) =>
    left.reduce((sum, value, place) => sum + value * (right[place] ?? 0), 0);
  const size = Math.sqrt(product(one, one) * product(other, other));
  return size === 0 ? 0 : product(one, other) / size;
}
