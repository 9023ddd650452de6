// The versions of the catalog, on the operator's screen of the catalog.

import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { count } from "../../format.ts";
import { type Loaded, useApi } from "../../hooks.ts";
import { Section } from "../../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { Badge, When } from "../../kit/values.tsx";
import { Checked } from "./catalog-check.tsx";
import { PutInForce } from "./catalog-editor.tsx";
import {
  type AdminList,
  admin,
  type CatalogCheck,
  type CatalogText,
  type CatalogVersion,
} from "./types.ts";

/** The newest versions. Each can be downloaded, and put in force again as the next one. */
export function CatalogVersions({
  loaded,
  text,
  onDone,
}: {
  loaded: Loaded<AdminList<CatalogVersion>>;
  text: CatalogText;
  onDone(): void;
}) {
  const [back, setBack] = useState<number | null>(null);
  const inForce = text.version?.number;
  const columns: Column<CatalogVersion>[] = [
    {
      head: "Version",
      cell: ({ number }) => (
        <>
          {number} {number === inForce && <Badge tone="good">in force</Badge>}
        </>
      ),
    },
    { head: "Time", cell: ({ createdAt }) => <When at={createdAt} /> },
    { head: "Who", cell: ({ actor }) => <span class="break">{actor ?? "the file"}</span> },
    { head: "Note", cell: ({ note }) => <span class="break">{note ?? "–"}</span> },
    { head: "Models", numeric: true, cell: ({ models }) => count(models) },
    {
      head: "Actions",
      isActions: true,
      cell: ({ number }) => (
        <>
          <a class="button" href={`${admin}/catalog/file?version=${number}`} download>
            Download<span class="unseen"> version {number}</span>
          </a>
          {number !== inForce && (
            <button type="button" onClick={() => setBack(number)}>
              Roll back<span class="unseen"> to version {number}</span>
            </button>
          )}
        </>
      ),
    },
  ];
  return (
    <Section title="Versions">
      <Table
        caption="Versions of the catalog"
        columns={columns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={({ number }) => String(number)}
        empty={
          <Empty title="Nothing was changed yet">
            <p>The catalog file is in force until the first change here.</p>
          </Empty>
        }
      />
      {back !== null && (
        <RollBack
          number={back}
          expected={text.newest}
          onClose={() => setBack(null)}
          onDone={onDone}
        />
      )}
    </Section>
  );
}

/** Shows what an earlier version would change before it is put in force again. */
function RollBack({
  number,
  expected,
  onClose,
  onDone,
}: {
  number: number;
  expected: number;
  onClose(): void;
  onDone(): void;
}) {
  const checked = useApi<CatalogCheck>(`${admin}/catalog/text?version=${number}`, checkText);
  return (
    <PutInForce
      title={`Roll back to version ${number}?`}
      submit="Roll back"
      body={{ version: number, expected }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>Its text becomes version {expected + 1}, within 2 seconds. Nothing is removed.</p>
      <ErrorText error={checked.error} retry={checked.reload} />
      {checked.data ? <Checked check={checked.data} /> : !checked.error && <Waiting />}
    </PutInForce>
  );
}

async function checkText(path: string, options: { signal?: AbortSignal }): Promise<CatalogCheck> {
  const { yaml } = await call<CatalogText>(path, options);
  return call(`${admin}/catalog/check`, { ...options, method: "POST", body: { yaml } });
}
