// The screen on which an operator changes the own password and second factor.

import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { useApi } from "../../hooks.ts";
import { Dialog, FormDialog } from "../../kit/dialog.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../../kit/states.tsx";
import { endSession, session } from "../../session.ts";
import { NewAuthenticator, RecoveryCodes, secretOf } from "../second-factor.tsx";
import { NewPassword } from "../set-up.tsx";
import { type AdminOperator, admin } from "./types.ts";

const own = `${admin}/own-operator`;

type Open = "password" | "totp" | "codes" | null;

/** The password and second factor of the reader. */
export function OwnOperator() {
  const name = session.value?.operatorName ?? null;
  const loaded = useApi<AdminOperator>(name === null ? null : own);
  const [open, setOpen] = useState<Open>(null);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const close = () => setOpen(null);
  const done = (made: readonly string[]) => {
    close();
    setCodes(made);
    loaded.reload();
  };
  if (name === null) {
    return (
      <Page title="My sign-in">
        <Empty title="You did not sign in by name">
          <p>
            The admin token and an identity provider have no password and no second factor here.
          </p>
        </Empty>
      </Page>
    );
  }
  return (
    <Page title="My sign-in" lead={`You are ${name}.`}>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.data && !loaded.error && <Waiting />}
      {loaded.data && (
        <div class="stack">
          <p>{loaded.data.recoveryCodes} recovery codes are left.</p>
          <div class="row">
            <button type="button" onClick={() => setOpen("password")}>
              Change password
            </button>
            <button type="button" onClick={() => setOpen("totp")}>
              New authenticator
            </button>
            <button type="button" onClick={() => setOpen("codes")}>
              New recovery codes
            </button>
          </div>
        </div>
      )}
      {open === "password" && <ChangePassword onClose={close} />}
      {open === "totp" && <ChangeTotp onClose={close} onDone={done} />}
      {open === "codes" && <NewCodes onClose={close} onDone={done} />}
      {codes && (
        <Dialog title="Your recovery codes" onClose={() => undefined}>
          <div class="stack">
            <RecoveryCodes codes={codes} />
            <div class="dialog-actions">
              <button type="button" class="primary" onClick={() => setCodes(null)}>
                I have kept them
              </button>
            </div>
          </div>
        </Dialog>
      )}
    </Page>
  );
}

interface DialogProps {
  onClose(): void;
}

interface MakesCodes extends DialogProps {
  onDone(codes: readonly string[]): void;
}

const post = (path: string, body: object) =>
  call<{ recoveryCodes: string[] }>(own + path, { method: "POST", body });

function ChangePassword({ onClose }: DialogProps) {
  const [password, setPassword] = useState("");
  return (
    <FormDialog
      title="Change your password"
      submit="Change password"
      onClose={onClose}
      onSubmit={async () => {
        await post("/password", { password });
        endSession();
      }}
    >
      <p>All your sessions end, this one too. You sign in again with the new password.</p>
      <NewPassword password={password} onPassword={setPassword} />
    </FormDialog>
  );
}

function ChangeTotp({ onClose, onDone }: MakesCodes) {
  const draft = useApi<{ uri: string }>(`${own}/totp`);
  const [code, setCode] = useState("");
  const uri = draft.data?.uri;
  return (
    <FormDialog
      title="New authenticator"
      submit="Use the new one"
      onClose={onClose}
      onSubmit={async () => {
        if (!uri) return;
        const made = await post("/totp", { totpSecret: secretOf(uri), code });
        onDone(made.recoveryCodes);
      }}
    >
      <p>The present authenticator and its recovery codes stop working.</p>
      <ErrorText error={draft.error} retry={draft.reload} />
      {uri ? <NewAuthenticator uri={uri} code={code} onCode={setCode} /> : <Waiting />}
    </FormDialog>
  );
}

function NewCodes({ onClose, onDone }: MakesCodes) {
  return (
    <FormDialog
      title="Make new recovery codes?"
      submit="Make new ones"
      onClose={onClose}
      onSubmit={async () => onDone((await post("/recovery-codes", {})).recoveryCodes)}
    >
      <p>The present ones stop working.</p>
    </FormDialog>
  );
}
