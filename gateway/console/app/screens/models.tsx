import { count } from "../format.ts";
import { useApi, useFilters } from "../hooks.ts";
import { Select, TextField } from "../kit/form.tsx";
import { Page } from "../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { Badge, Count, Fact } from "../kit/values.tsx";
import { modelKinds, triedKinds } from "../model-kinds.ts";
import type { List, Model } from "../types.ts";
import { ModelPriceFacts, VideoPrices } from "./priced-parts.tsx";

const orders = {
  name: "Name",
  price: "Price, lowest first",
  context: "Context, largest first",
} as const;
type Order = keyof typeof orders;

/** The models with their limits, options and prices, as in `GET /models`. */
export function Models() {
  const loaded = useApi<List<Model>>("/models");
  const { query, set } = useFilters();
  const { kind, q = "", sort } = query;
  const order: Order = sort === "price" || sort === "context" ? sort : "name";
  const ofKind = loaded.data?.data.filter((model) => !kind || model.kind === kind);
  const models = sorted(ofKind?.filter((model) => isNamed(model, q)) ?? [], order);
  return (
    <Page title="Models" lead="The models that your key may use, with their prices.">
      <div class="filters">
        <TextField
          label="Search"
          type="search"
          placeholder="Name, id or description"
          value={q}
          onValue={(text) => set({ q: text })}
        />
        <Select
          label="Kind"
          value={kind ?? ""}
          onValue={(value) => set({ kind: value })}
          choices={[{ value: "", label: "All kinds" }, ...modelKinds]}
        />
        <Select
          label="Order"
          value={order}
          onValue={(value) => set({ sort: value === "name" ? undefined : value })}
          choices={Object.entries(orders).map(([value, label]) => ({ value, label }))}
        />
      </div>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.data && !loaded.error && <Waiting lines={8} />}
      {loaded.data && models.length === 0 && (
        <Empty title={q ? "No model has these words" : "No model of this kind"}>
          <p>
            {q
              ? "Search for fewer words, or in all kinds."
              : "The operator's catalog offers none, or your key may not use it."}
          </p>
        </Empty>
      )}
      <div class="cards">
        {models.map((model) => (
          <ModelCard key={model.id} model={model} />
        ))}
      </div>
    </Page>
  );
}

function isNamed({ id, name, description = "" }: Model, text: string): boolean {
  const all = `${id} ${name} ${description}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/** The catalog's own order stays where models are equal. A model without the figure comes last. */
function sorted(models: readonly Model[], order: Order): Model[] {
  if (order === "name") {
    return [...models].sort((one, other) => one.name.localeCompare(other.name));
  }
  const rank = (model: Model) =>
    order === "price" ? priceRank(model) : -(model.maxInputTokens ?? Number.NEGATIVE_INFINITY);
  return [...models].sort((one, other) => rank(one) - rank(other) || 0);
}

/** Compares models of one kind alone. USD micros or credits; those of text are of as much input as output. */
function priceRank({ pricing, creditPrice, videoOptions }: Model): number {
  if (creditPrice !== undefined) return creditPrice;
  if (videoOptions) return Math.min(...videoOptions.map(({ credits }) => credits));
  const { inputUsdMicrosPerMillionTokens: input, outputUsdMicrosPerMillionTokens: output } =
    pricing ?? {};
  if (input !== undefined) return input + (output ?? 0);
  return (
    pricing?.usdMicrosPerMillionCharacters ??
    pricing?.usdMicrosPerMinute ??
    Number.POSITIVE_INFINITY
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
    ["Context", model.maxInputTokens && `${count(model.maxInputTokens)} tokens`],
    ["Max output tokens", model.maxOutputTokens && `${count(model.maxOutputTokens)} tokens`],
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
    ["Most audio", typeof model.maxSeconds === "number" && `${count(model.maxSeconds)} s`],
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
