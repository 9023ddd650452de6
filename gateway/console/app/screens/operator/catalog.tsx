import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { count } from "../../format.ts";
import { useAction, useApi } from "../../hooks.ts";
import { TextArea } from "../../kit/form.tsx";
import { Page, Section } from "../../kit/page.tsx";
import { Empty, ErrorText, Notice, Waiting } from "../../kit/states.tsx";
import { Badge, Id } from "../../kit/values.tsx";
import { ModelPriceFacts, PriceFacts, VideoPrices } from "../priced-parts.tsx";
import {
  admin,
  type Catalog,
  type CatalogCheck,
  type CatalogModel,
  type Upstream,
  type Upstreams,
} from "./types.ts";
import { percent, upstreamStates } from "./upstreams.tsx";

/** The catalog in force, and the changes that a draft would make. The operator installs the file outside the console. */
export function OperatorCatalog() {
  const loaded = useApi<Catalog>(`${admin}/catalog`);
  const upstreams = useApi<Upstreams>(`${admin}/upstreams`);
  const stateOf = new Map(upstreams.data?.data.map(({ name, state }) => [name, state]));
  const models = loaded.data?.models;
  return (
    <Page
      title="Catalog"
      lead={
        loaded.data ? (
          <>
            In force: version <Id>{loaded.data.version}</Id>
          </>
        ) : (
          "What is in force"
        )
      }
    >
      <CheckDraft />
      <Section title="In force">
        <ErrorText error={loaded.error} retry={loaded.reload} />
        {!models && !loaded.error && <Waiting lines={8} />}
        {models?.length === 0 && (
          <Empty title="The catalog has no models">
            <p>Add some to the catalog file; it is read again within 2 seconds of a change.</p>
          </Empty>
        )}
        <div class="cards">
          {models?.map((model) => (
            <ModelInForce key={model.id} model={model} stateOf={stateOf} />
          ))}
        </div>
      </Section>
    </Page>
  );
}

type States = ReadonlyMap<string, Upstream["state"]>;

function ModelInForce({ model, stateOf }: { model: CatalogModel; stateOf: States }) {
  return (
    <article class="card model">
      <header>
        <div>
          <h3>{model.name}</h3>
          <code class="id">{model.id}</code>
        </div>
        <span class="badges">
          {!model.active && <Badge tone="warn">not offered</Badge>}
          <Badge>{model.kind}</Badge>
        </span>
      </header>
      <dl class="facts">
        <ModelPriceFacts model={model} />
      </dl>
      {model.videoOptions && <VideoPrices options={model.videoOptions} />}
      {model.upstreamCost && (
        <details>
          <summary>What you pay for it</summary>
          <dl class="facts">
            <PriceFacts pricing={model.upstreamCost} />
          </dl>
        </details>
      )}
      <ul class="lanes" aria-label={`Upstreams of ${model.name}`}>
        {model.lanes.map((lane) => (
          <Lane key={lane.name} lane={lane} lanes={model.lanes} state={stateOf.get(lane.name)} />
        ))}
      </ul>
    </article>
  );
}

/** An upstream with one of its keys. Its part is shown where it shares requests with others, its level where others come first. */
function Lane({
  lane: { name, key, level, share, model },
  lanes,
  state,
}: {
  lane: CatalogModel["lanes"][number];
  lanes: CatalogModel["lanes"];
  state: Upstream["state"] | undefined;
}) {
  const isAlone = lanes.filter((one) => one.level === level).length === 1;
  const part = [!isAlone && percent.format(share), level > 1 && "if others fail"];
  return (
    <li>
      <span>
        {name} <span class="muted">{part.filter(Boolean).join(", ")}</span>
        <span class="sub">
          as {model}
          {key && (
            <>
              , key in <code>{key}</code>
            </>
          )}
        </span>
      </span>
      {state && <Badge tone={upstreamStates[state].tone}>{upstreamStates[state].text}</Badge>}
    </li>
  );
}

function CheckDraft() {
  const [yaml, setYaml] = useState("");
  const [check, setCheck] = useState<CatalogCheck | null>(null);
  const action = useAction(async () => {
    setCheck(await call(`${admin}/catalog/check`, { method: "POST", body: { yaml } }));
  });
  return (
    <Section title="Check a draft">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        <TextArea
          label="Catalog file (YAML)"
          hint="It is compared with what is in force. Nothing is changed."
          rows={8}
          required
          value={yaml}
          onValue={setYaml}
        />
        <div class="row">
          <button type="submit" class="primary" disabled={action.isBusy}>
            Check
          </button>
          <label class="button">
            Open a file
            <input
              class="unseen"
              type="file"
              accept=".yaml,.yml,.json"
              onChange={async (event) => {
                const [file] = event.currentTarget.files ?? [];
                if (file) setYaml(await file.text());
              }}
            />
          </label>
        </div>
      </form>
      <ErrorText error={action.error} />
      {check && <Checked check={check} />}
    </Section>
  );
}

function Checked({ check }: { check: CatalogCheck }) {
  if (!check.ok) {
    return (
      <div class="stack after" role="status">
        <Notice tone="warn">
          <strong>It would be refused, and what is in force would stay.</strong>
        </Notice>
        <ul class="list">
          {check.faults.map((fault) => (
            <li key={fault.path + fault.message}>
              <code>{fault.path || "the file"}</code>
              <p>{fault.message}</p>
            </li>
          ))}
        </ul>
      </div>
    );
  }
  return (
    <div class="stack after" role="status">
      <Notice tone="good">
        <strong>It is well-formed: {count(check.models)} models.</strong>
        <p>
          {check.changes.length === 0
            ? "It offers the same as what is in force."
            : `It changes ${check.changes.length} of them.`}
          {check.isShortened && " More fields differ than are shown."}
        </p>
      </Notice>
      {check.changes.length > 0 && (
        <ul class="list">
          {check.changes.map((change) => (
            <li key={change.model}>
              <p class="row">
                <code>{change.model}</code>
                <Badge tone={tones[change.change]}>{change.change}</Badge>
              </p>
              {change.fields.map((field) => (
                <p class="sub diff" key={field.path}>
                  <code>{field.path}</code> <del>{shown(field.before)}</del>{" "}
                  <ins>{shown(field.after)}</ins>
                </p>
              ))}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const tones = { added: "good", removed: "bad", changed: "warn" } as const;
const shown = (value: unknown) => (value === null ? "nothing" : JSON.stringify(value));
