// The operator's screen of the catalog.

import { percent } from "../../format.ts";
import { useApi } from "../../hooks.ts";
import { Page, Section } from "../../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../../kit/states.tsx";
import { Badge, Id, Status } from "../../kit/values.tsx";
import { ModelPriceFacts, PriceFacts, VideoPrices } from "../priced-parts.tsx";
import { CatalogEditor } from "./catalog-editor.tsx";
import { CatalogVersions } from "./catalog-versions.tsx";
import { StoredKeys } from "./stored-keys.tsx";
import {
  type AdminList,
  admin,
  type Catalog,
  type CatalogModel,
  type CatalogText,
  type CatalogVersion,
  type StoredKeys as ListedKeys,
  type Upstream,
  type Upstreams,
} from "./types.ts";

/** The catalog in force, its text, and its versions. Where a file is the master, the text is checked here and installed elsewhere. */
export function OperatorCatalog() {
  const loaded = useApi<Catalog>(`${admin}/catalog`);
  const text = useApi<CatalogText>(`${admin}/catalog/text`);
  const versions = useApi<AdminList<CatalogVersion>>(`${admin}/catalog/versions`);
  const upstreams = useApi<Upstreams>(`${admin}/upstreams`);
  const keys = useApi<ListedKeys>(`${admin}/catalog/keys`);
  const reload = () => {
    for (const one of [loaded, text, versions, upstreams, keys]) one.reload();
  };
  const stateOf = new Map(upstreams.data?.data.map(({ name, state }) => [name, state]));
  const models = loaded.data?.models;
  // One part would push the others down when it came.
  const isKnown = [loaded, text, versions, keys].every(({ data, error }) => data || error);
  return (
    <Page
      title="Catalog"
      lead={
        isKnown && loaded.data && text.data ? (
          <>
            In force: {text.data.version ? `version ${text.data.version.number}` : "the file"},
            content <Id>{loaded.data.version}</Id>
          </>
        ) : (
          "The catalog in force"
        )
      }
      actions={
        <a class="button" href={`${admin}/catalog/file`} download>
          Download YAML
        </a>
      }
    >
      {isKnown ? (
        <>
          <CatalogEditor loaded={text} onDone={reload} />
          {text.data?.isEditable && (
            <>
              <StoredKeys loaded={keys} />
              <CatalogVersions loaded={versions} text={text.data} onDone={reload} />
            </>
          )}
          <Section title="In force">
            <ErrorText error={loaded.error} retry={loaded.reload} />
            {models?.length === 0 && (
              <Empty title="The catalog has no models">
                <p>Add some to its text. A change is in force within 2 seconds.</p>
              </Empty>
            )}
            <div class="cards">
              {models?.map((model) => (
                <ModelInForce key={model.id} model={model} stateOf={stateOf} />
              ))}
            </div>
          </Section>
        </>
      ) : (
        <Waiting lines={12} />
      )}
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
          <summary>Your cost</summary>
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
      {state && <Status of="upstream" value={state} />}
    </li>
  );
}
