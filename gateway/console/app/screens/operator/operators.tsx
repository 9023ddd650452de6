import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { useAction, useApi } from "../../hooks.ts";
import { FormDialog } from "../../kit/dialog.tsx";
import { TextField } from "../../kit/form.tsx";
import { Page } from "../../kit/page.tsx";
import { ShownOnce } from "../../kit/secret-once.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { toast } from "../../kit/toast.tsx";
import { Status, When } from "../../kit/values.tsx";
import { type AdminList, type AdminOperator, admin } from "./types.ts";

/** Acts on an operator, by the end of their route. Those that make a link show it once. */
const acts = {
  disable: {
    button: "Disable",
    title: "Disable",
    text: "The operator's sessions end within a second. You can enable the operator again at any time.",
  },
  "reset-password": {
    button: "Reset password",
    title: "Reset the password of",
    text: "The password stops working and the sessions end. You get a link for the operator, who needs a code of the authenticator with it.",
  },
  "reset-totp": {
    button: "Reset second factor",
    title: "Reset the second factor of",
    text: "Authenticator and recovery codes stop working and the sessions end. You get a link for the operator, who needs the password with it.",
  },
  remove: {
    button: "Remove",
    title: "Remove",
    text: "The operator's sessions end within a second. The audit log keeps the name.",
  },
} as const;
type Act = keyof typeof acts;

type Open = { act: "add" } | { act: Act; name: string } | null;

/** The operators who sign in by name. */
export function Operators() {
  const loaded = useApi<AdminList<AdminOperator>>(`${admin}/operators`);
  const [open, setOpen] = useState<Open>(null);
  const [made, setMade] = useState<MadeLink | null>(null);
  const done = (link: MadeLink | null) => {
    setOpen(null);
    setMade(link);
    loaded.reload();
  };
  const enable = useAction(async ({ name }: AdminOperator) => {
    await call(`${pathOf(name)}/enable`, { method: "POST", body: {} });
    toast("The operator may sign in again.");
    loaded.reload();
  });
  const actions: Column<AdminOperator> = {
    head: "Actions",
    isActions: true,
    cell: (operator) => (
      <>
        {operator.state === "disabled" && (
          <button type="button" class="small" onClick={() => enable.run(operator)}>
            Enable
          </button>
        )}
        {(Object.keys(acts) as Act[])
          .filter((act) => act !== "disable" || operator.state !== "disabled")
          .map((act) => (
            <button
              type="button"
              key={act}
              class={act === "remove" ? "small danger-text" : "small"}
              onClick={() => setOpen({ act, name: operator.name })}
            >
              {acts[act].button}
            </button>
          ))}
      </>
    ),
  };
  return (
    <Page
      title="Operators"
      lead="Operators who sign in by name, with a password and a second factor. The admin token works, too."
      actions={
        <button type="button" class="primary" onClick={() => setOpen({ act: "add" })}>
          Add an operator
        </button>
      }
    >
      <ErrorText error={enable.error} />
      <Table
        caption="Operators"
        columns={[...columns, actions]}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={({ name }) => name}
        empty={
          <Empty title="No operator signs in by name">
            <p>Add one, so that the audit log says who did what.</p>
          </Empty>
        }
      />
      {open?.act === "add" && <Add onClose={() => setOpen(null)} onDone={done} />}
      {open && open.act !== "add" && (
        <Change act={open.act} name={open.name} onClose={() => setOpen(null)} onDone={done} />
      )}
      {made && (
        <ShownOnce
          title={`The link for ${made.name}`}
          lead={`Send it to ${made.name} on a way that nobody else reads. It works once, within 24 hours, and is shown this once.`}
          text={location.origin + made.setUpPath}
          onClose={() => setMade(null)}
        />
      )}
    </Page>
  );
}

const pathOf = (name: string) => `${admin}/operators/${encodeURIComponent(name)}`;

const columns: Column<AdminOperator>[] = [
  { head: "Name", cell: ({ name }) => <span class="break">{name}</span> },
  {
    head: "State",
    cell: ({ state, linkEndsAt, codesRefusedUntil }) => (
      <>
        <Status of="operator" value={state} />
        {linkEndsAt && (
          <span class="sub">
            link until <When at={linkEndsAt} style="second" />
          </span>
        )}
        {codesRefusedUntil && (
          <span class="sub">
            too many wrong codes: recovery codes alone until{" "}
            <When at={codesRefusedUntil} style="second" />
          </span>
        )}
      </>
    ),
  },
  { head: "Recovery codes", numeric: true, cell: ({ recoveryCodes }) => recoveryCodes },
  { head: "Last sign-in", numeric: true, cell: (one) => <When at={one.signedInAt} style="ago" /> },
];

/** A link that is shown once. */
interface MadeLink {
  name: string;
  setUpPath: string;
}

interface DialogProps {
  onClose(): void;
  onDone(made: MadeLink | null): void;
}

function Add({ onClose, onDone }: DialogProps) {
  const [name, setName] = useState("");
  return (
    <FormDialog
      title="Add an operator"
      submit="Add operator"
      onClose={onClose}
      onSubmit={async () =>
        onDone(
          await call<MadeLink>(`${admin}/operators`, {
            method: "POST",
            body: { name: name.trim() },
          }),
        )
      }
    >
      <p>An operator may do all that you may. You get a link with which the person sets it up.</p>
      <TextField
        label="Name"
        hint="Small letters, digits and . _ @ + -, for example an e-mail address. The audit log shows it."
        name="name"
        required
        autoFocus
        maxLength={64}
        value={name}
        onValue={setName}
      />
    </FormDialog>
  );
}

function Change({ act, name, onClose, onDone }: DialogProps & { act: Act; name: string }) {
  const { title, button, text } = acts[act];
  return (
    <FormDialog
      title={`${title} ${name}?`}
      submit={button}
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        const made = await call<Partial<MadeLink>>(`${pathOf(name)}/${act}`, {
          method: "POST",
          body: {},
        });
        onDone(made.setUpPath ? { name, setUpPath: made.setUpPath } : null);
      }}
    >
      <p>{text}</p>
    </FormDialog>
  );
}
