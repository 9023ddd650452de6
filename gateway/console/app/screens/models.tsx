import { count } from "../format.ts";
import { useApi, useFilters } from "../hooks.ts";
import { Select } from "../kit/form.tsx";
import { Page } from "../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { Badge, Count, Fact } from "../kit/values.tsx";
import { modelKinds, triedKinds } from "../model-kinds.ts";
import type { List, Model } from "../types.ts";
import { ModelPriceFacts, VideoPrices } from "./priced-parts.tsx";

/** The models with their limits, options and prices, as in `GET /models`. */
export function Models() {
  const loaded = useApi<List<Model>>("/models");
  const { query, set } = useFilters();
  const models = loaded.data?.data.filter((model) => !query.kind || model.kind === query.kind);
  return (
    <Page
      title="Models"
      lead="What your key may use, and what it costs. Prices of text are for a million tokens."
    >
      <div class="filters">
        <Select
          label="Kind"
          value={query.kind ?? ""}
          onValue={(kind) => set({ kind })}
          choices={[{ value: "", label: "All kinds" }, ...modelKinds]}
        />
      </div>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.data && !loaded.error && <Waiting lines={8} />}
      {models?.length === 0 && (
        <Empty title="No model of this kind">
          <p>The operator's catalog offers none, or your key may not use it.</p>
        </Empty>
      )}
      <div class="cards">
        {models?.map((model) => (
          <ModelCard key={model.id} model={model} />
        ))}
      </div>
    </Page>
  );
}

function ModelCard({ model }: { model: Model }) {
  const kind = modelKinds.find(({ value }) => value === model.kind)?.label ?? model.kind;
  return (
    <article class="card model">
      <header>
        <div>
          <h2>{model.name}</h2>
          <code class="id">{model.id}</code>
        </div>
        <span class="badges">
          {model.default && <Badge tone="good">default</Badge>}
          {model.deprecatedAt && (
            <Badge tone="warn">deprecated {model.deprecatedAt.slice(0, 10)}</Badge>
          )}
          {model.shutdownDate && <Badge tone="warn">ends {model.shutdownDate.slice(0, 10)}</Badge>}
          <Badge>{kind}</Badge>
        </span>
      </header>
      {model.description && <p class="muted">{model.description}</p>}
      <dl class="facts">
        <Facts model={model} />
      </dl>
      {model.videoOptions && <VideoPrices options={model.videoOptions} />}
      {triedKinds().some(({ value }) => value === model.kind) && (
        <a
          class="button small"
          href={`/console/playground?kind=${model.kind}&model=${encodeURIComponent(model.id)}`}
        >
          Try {model.name}
        </a>
      )}
    </article>
  );
}

const words = (list: unknown): string | undefined =>
  Array.isArray(list) && list.length > 0
    ? list.map((one) => (typeof one === "object" ? (one.name ?? one.id) : one)).join(", ")
    : undefined;

function Facts({ model }: { model: Model }) {
  const facts: [name: string, value: preact.ComponentChildren | undefined][] = [
    ["Most input", model.maxInputTokens && `${count(model.maxInputTokens)} tokens`],
    ["Most output", model.maxOutputTokens && `${count(model.maxOutputTokens)} tokens`],
    ["Takes", words(model.inputModalities)],
    ["Tools", model.tools === undefined ? undefined : model.tools ? "yes" : "no"],
    ["Reasoning", words(model.reasoningEfforts)],
    ["Sizes", words(model.sizes)],
    ["Resolutions", words(model.resolutions)],
    ["Aspect ratios", words(model.availableAspectRatios)],
    [
      "References",
      model.maxReferences && (
        <>
          up to <Count value={model.maxReferences} />
        </>
      ),
    ],
    [
      "Images",
      model.maxImages && (
        <>
          up to <Count value={model.maxImages} />
        </>
      ),
    ],
    ["Modes", words(model.modes)],
    ["Voices", words(model.voices)],
    ["Languages", words(model.languages)],
    ["Formats", words(model.formats)],
    ["Most inputs", typeof model.maxInputs === "number" && count(model.maxInputs)],
    ["Most sound", typeof model.maxSeconds === "number" && `${count(model.maxSeconds)} s`],
    [
      "Most characters",
      typeof model.maxInputCharacters === "number" && count(model.maxInputCharacters),
    ],
  ];
  return (
    <>
      <ModelPriceFacts model={model} />
      {facts.map(([name, value]) =>
        !value ? null : (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ),
      )}
    </>
  );
}
