import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { count } from "../../format.ts";
import { useAction, useApi } from "../../hooks.ts";
import { TextArea } from "../../kit/form.tsx";
import { Page, Section } from "../../kit/page.tsx";
import { Empty, ErrorText, Notice } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { Badge, Id } from "../../kit/values.tsx";
import { admin, type Catalog, type CatalogCheck } from "./types.ts";

type CatalogModel = Catalog["models"][number];

const columns: Column<CatalogModel>[] = [
  {
    head: "Model",
    cell: (model) => (
      <>
        {model.name}
        <span class="sub">
          <code>{model.id}</code>
        </span>
      </>
    ),
  },
  { head: "Kind", cell: (model) => model.kind },
  {
    head: "Upstreams",
    cell: (model) => model.upstreams.join(", "),
  },
];

/** The catalog in force, and the changes that a draft would make. The operator installs the file outside the console. */
export function OperatorCatalog() {
  const loaded = useApi<Catalog>(`${admin}/catalog`);
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
        <Table
          caption="Models in force"
          columns={columns}
          loaded={loaded}
          rowsOf={loaded.data?.models}
          keyOf={(model) => model.id}
          empty={
            <Empty title="The catalog has no models">
              <p>Add some to the catalog file; it is read again within 2 seconds of a change.</p>
            </Empty>
          }
        />
      </Section>
    </Page>
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
