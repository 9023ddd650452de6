// The form in which an operator writes a text of the catalog, and the dialog that puts it in force.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { type Loaded, useAction } from "../../hooks.ts";
import { FormDialog } from "../../kit/dialog.tsx";
import { TextArea, TextField } from "../../kit/form.tsx";
import { Section } from "../../kit/page.tsx";
import { ErrorText, Notice } from "../../kit/states.tsx";
import { toast } from "../../kit/toast.tsx";
import { Checked } from "./catalog-check.tsx";
import { admin, type CatalogCheck, type CatalogText, type CatalogVersion } from "./types.ts";

/** Characters of a note. The service has the same bound. */
export const maxNoteChars = 200;

/** A text that was checked, and the newest version at that moment. */
interface CheckedText {
  yaml: string;
  check: CatalogCheck;
  expected: number;
}

/** A text of the catalog is written, checked against what is in force, and put in force. */
export function CatalogEditor({ loaded, onDone }: { loaded: Loaded<CatalogText>; onDone(): void }) {
  const [yaml, setYaml] = useState("");
  const [checked, setChecked] = useState<CheckedText | null>(null);
  const [isPutting, setPutting] = useState(false);
  const { data, error, reload } = loaded;
  const write = (text: string) => {
    setYaml(text);
    setChecked(null);
  };
  const action = useAction(async () => {
    // Read before the check: what comes into force in between is noticed then.
    const { newest } = await call<CatalogText>(`${admin}/catalog/text`);
    const check = await call<CatalogCheck>(`${admin}/catalog/check`, {
      method: "POST",
      body: { yaml },
    });
    setChecked({ yaml, check, expected: newest });
  });
  const isEditable = data?.isEditable === true;
  return (
    <Section title={isEditable ? "Change the catalog" : "Check a draft"}>
      <ErrorText error={error} retry={reload} />
      {data && !data.isEditable && (
        <Notice>
          A file is the master of this catalog. Change the file, and it is in force within 2
          seconds. To change it here, set <code>GENMESH_CATALOG</code> to <code>store:</code> and
          the path of the file.
        </Notice>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        <TextArea
          label="Catalog (YAML)"
          hint={
            isEditable
              ? "Keys stay out of it: it names stored keys, or the variables that hold them. It is checked first."
              : "It is compared with what is in force. Nothing is changed."
          }
          rows={yaml === "" ? 8 : 20}
          required
          value={yaml}
          onValue={write}
        />
        <div class="row">
          <button type="submit" class="primary" disabled={action.isBusy}>
            Check
          </button>
          <button type="button" disabled={!data} onClick={() => write(data?.yaml ?? "")}>
            {isEditable ? "Edit what is in force" : "Start from what is in force"}
          </button>
          <OpenFile onText={write} />
        </div>
      </form>
      <ErrorText error={action.error} />
      {checked && <Checked check={checked.check} />}
      {checked?.check.ok && isEditable && (
        <div class="row after">
          <button type="button" class="primary" onClick={() => setPutting(true)}>
            Put in force
          </button>
        </div>
      )}
      {checked && isPutting && (
        <PutInForce
          title="Put this catalog in force?"
          submit="Put in force"
          body={{ yaml: checked.yaml, expected: checked.expected }}
          onClose={() => setPutting(false)}
          onDone={() => {
            write("");
            onDone();
          }}
        >
          <p>
            New requests and jobs get its models and prices within 2 seconds. Those that run keep
            the prices that they began with.
          </p>
        </PutInForce>
      )}
    </Section>
  );
}

function OpenFile({ onText }: { onText(text: string): void }) {
  return (
    <label class="button">
      Open a file
      <input
        class="unseen"
        type="file"
        accept=".yaml,.yml,.json"
        onChange={async (event) => {
          const [file] = event.currentTarget.files ?? [];
          if (file) onText(await file.text());
        }}
      />
    </label>
  );
}

/** Asks for a reason, and makes the next version of a text or of an earlier version. */
export function PutInForce({
  title,
  submit,
  body,
  children,
  onClose,
  onDone,
}: {
  title: string;
  submit: string;
  body: { yaml?: string; version?: number; expected: number };
  children: ComponentChildren;
  onClose(): void;
  onDone(): void;
}) {
  const [note, setNote] = useState("");
  // All attempts of this form use the same value, so that a lost answer makes no second version.
  const [operationId] = useState(() => crypto.randomUUID());
  return (
    <FormDialog
      title={title}
      submit={submit}
      onClose={onClose}
      onSubmit={async () => {
        const made = await call<CatalogVersion>(`${admin}/catalog/versions`, {
          method: "POST",
          body: { ...body, note, operationId },
        });
        toast(`Version ${made.number} is in force.`);
        onClose();
        onDone();
      }}
    >
      {children}
      <TextField
        label="Note"
        hint="Why, for the list of versions. It may be empty."
        maxLength={maxNoteChars}
        value={note}
        onValue={setNote}
      />
    </FormDialog>
  );
}
