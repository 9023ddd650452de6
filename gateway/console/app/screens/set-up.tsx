// The page of an operator's invitation, and the form for a new password.

import { useEffect, useState } from "preact/hooks";
import { call } from "../api.ts";
import { useAction, useApi } from "../hooks.ts";
import { TextField } from "../kit/form.tsx";
import { ErrorText, Waiting } from "../kit/states.tsx";
import { Toasts } from "../kit/toast.tsx";
import { Brand } from "../sign-in.tsx";
import { CodeField, NewAuthenticator, RecoveryCodes, secretOf } from "./second-factor.tsx";

interface Needs {
  needsPassword: boolean;
  needsTotp: boolean;
  /** Null: the present second factor stays. */
  totpUri: string | null;
}

/** The page of a link, where an operator sets up a password, a second factor, or both. It needs no session. */
export function SetUp() {
  // Browsers send the part behind "#" to no server.
  const [link] = useState(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  const needs = useApi<Needs>("/console/api/set-up/begin", (path, options) =>
    call<Needs>(path, { ...options, method: "POST", body: link }),
  );
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  useEffect(() => {
    document.title = "Set up your sign-in · genmesh";
  }, []);
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <Brand />
        <h1>{codes ? "You are set up" : "Set up your sign-in"}</h1>
        <ErrorText error={needs.error} />
        {!needs.data && !needs.error && <Waiting />}
        {needs.data && !codes && <Form link={link} needs={needs.data} onDone={setCodes} />}
        {codes && (
          <>
            {codes.length > 0 && <RecoveryCodes codes={codes} />}
            <p>Sign in with your name, your password and the next code of your authenticator.</p>
            <a class="button primary block" href="/console/" target="_top">
              Go to the sign-in
            </a>
          </>
        )}
      </div>
      <Toasts />
    </main>
  );
}

function Form({
  link,
  needs: { needsPassword, totpUri },
  onDone,
}: {
  link: Record<string, string>;
  needs: Needs;
  onDone(codes: readonly string[]): void;
}) {
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const action = useAction(async () => {
    const { recoveryCodes } = await call<{ recoveryCodes: string[] }>("/console/api/set-up", {
      method: "POST",
      body: { ...link, password, code, ...(totpUri && { totpSecret: secretOf(totpUri) }) },
    });
    onDone(recoveryCodes);
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        action.run();
      }}
    >
      <TextField
        label="Your name"
        name="username"
        autocomplete="username"
        disabled
        value={link.name ?? ""}
        onValue={() => undefined}
      />
      {needsPassword ? (
        <NewPassword password={password} onPassword={setPassword} />
      ) : (
        <TextField
          label="Your password"
          type="password"
          name="password"
          autocomplete="current-password"
          required
          value={password}
          onValue={setPassword}
        />
      )}
      {totpUri ? (
        <NewAuthenticator uri={totpUri} code={code} onCode={setCode} />
      ) : (
        <CodeField label="Code of your authenticator" code={code} onCode={setCode} />
      )}
      <ErrorText error={action.error} />
      <button type="submit" class="primary block" disabled={action.isBusy}>
        Set up
      </button>
    </form>
  );
}

/** Asks for a new password. The service has the same bounds. */
export function NewPassword({
  password,
  onPassword,
}: {
  password: string;
  onPassword(password: string): void;
}) {
  return (
    <TextField
      label="New password"
      hint="12 to 200 characters."
      error={password !== "" && password.length < 12 ? "12 characters or more." : undefined}
      type="password"
      name="new-password"
      autocomplete="new-password"
      required
      maxLength={200}
      value={password}
      onValue={onPassword}
    />
  );
}
