// Shows the stored keys of upstreams on the page of the catalog, and stores, replaces and deletes them. A key is written here and never read.

import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import type { Loaded } from "../../hooks.ts";
import { FormDialog } from "../../kit/dialog.tsx";
import { TextField } from "../../kit/form.tsx";
import { Section } from "../../kit/page.tsx";
import { Empty, Notice } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { toast } from "../../kit/toast.tsx";
import { When } from "../../kit/values.tsx";
import { admin, type StoredKeys as Listed, type StoredKey } from "./types.ts";

const path = `${admin}/catalog/keys`;

const columns: Column<StoredKey>[] = [
  { head: "Name", cell: ({ name }) => <code>{name}</code> },
  { head: "Ends in", cell: ({ hint }) => (hint ? <code>…{hint}</code> : "–") },
  { head: "Upstreams", cell: ({ upstreams }) => upstreams.join(", ") || "none" },
  { head: "Set", cell: ({ setAt }) => <When at={setAt} /> },
  { head: "Who", cell: ({ actor }) => <span class="break">{actor}</span> },
];

type Open = { act: "set"; name: string | null } | { act: "delete"; name: string } | null;

/** The keys of upstreams that operators stored. A key goes in, and is never shown again. */
export function StoredKeys({ loaded }: { loaded: Loaded<Listed> }) {
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const done = () => {
    close();
    loaded.reload();
  };
  const isOn = loaded.data?.isOn === true;
  const actions: Column<StoredKey> = {
    head: "Actions",
    isActions: true,
    cell: ({ name }) => (
      <>
        {isOn && (
          <button type="button" class="small" onClick={() => setOpen({ act: "set", name })}>
            Replace<span class="unseen"> {name}</span>
          </button>
        )}
        <button
          type="button"
          class="small danger-text"
          onClick={() => setOpen({ act: "delete", name })}
        >
          Delete<span class="unseen"> {name}</span>
        </button>
      </>
    ),
  };
  return (
    <Section
      title="Keys of upstreams"
      actions={
        isOn && (
          <button type="button" onClick={() => setOpen({ act: "set", name: null })}>
            Store a key
          </button>
        )
      }
    >
      {loaded.data && !isOn && (
        <Notice>
          Stored keys are off, because this installation has no secret to seal them with. Set{" "}
          <code>GENMESH_SECRETS_KEY</code> to turn them on.
        </Notice>
      )}
      {loaded.data?.data.length === 0 && !isOn ? null : (
        <Table
          caption="Stored keys of upstreams"
          columns={[...columns, actions]}
          loaded={loaded}
          rowsOf={loaded.data?.data}
          keyOf={({ name }) => name}
          empty={
            <Empty title="No key is stored here">
              <p>
                Store one, and name it in the catalog: <code>apiKeyStored: its-name</code>.
              </p>
            </Empty>
          }
        />
      )}
      {open?.act === "set" && <SetKey name={open.name} onClose={close} onDone={done} />}
      {open?.act === "delete" && <DeleteKey name={open.name} onClose={close} onDone={done} />}
    </Section>
  );
}

interface DialogProps {
  onClose(): void;
  onDone(): void;
}

/** Stores a key under a new name, or in place of the one of a name. */
function SetKey({ name: known, onClose, onDone }: DialogProps & { name: string | null }) {
  const [name, setName] = useState(known ?? "");
  const [key, setKey] = useState("");
  return (
    <FormDialog
      title={known === null ? "Store a key" : `Replace the key ${known}`}
      submit={known === null ? "Store key" : "Replace key"}
      onClose={onClose}
      onSubmit={async () => {
        const body = { name: name.trim(), key: key.trim() };
        const made = await call<StoredKey>(path, { method: "POST", body });
        toast(`The key ${made.name} is stored. Within 2 seconds all replicas have it.`);
        onDone();
      }}
    >
      {known === null ? (
        <TextField
          label="Name"
          hint="Small letters, digits and . _ -, up to 32. The catalog names the key by it, and the audit log shows it."
          required
          autoFocus
          autocomplete="off"
          maxLength={32}
          value={name}
          onValue={setName}
        />
      ) : (
        <p>Requests are sent with the new key within 2 seconds. The catalog stays as it is.</p>
      )}
      <TextField
        label="Key"
        hint="As the upstream gave it to you. It is sealed, and never shown again."
        type="password"
        // Browsers fill in the operator's own password in spite of "off".
        autocomplete="new-password"
        required
        autoFocus={known !== null}
        maxLength={4096}
        value={key}
        onValue={setKey}
      />
    </FormDialog>
  );
}

function DeleteKey({ name, onClose, onDone }: DialogProps & { name: string }) {
  return (
    <FormDialog
      title={`Delete the key ${name}?`}
      submit="Delete key"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`${path}/${encodeURIComponent(name)}/delete`, { method: "POST", body: {} });
        toast(`The key ${name} is deleted.`);
        onDone();
      }}
    >
      <p>
        A key that the catalog in force names stays. A job that still runs with a key fails once
        that key is gone.
      </p>
    </FormDialog>
  );
}
