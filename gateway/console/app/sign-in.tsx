// The page that a reader without a session sees.

import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary } from "preact-iso/lazy";
import { useAction, useApi } from "./hooks.ts";
import { TextField } from "./kit/form.tsx";
import { ErrorText, Notice } from "./kit/states.tsx";
import { screen } from "./screen.tsx";
import { hasEnded } from "./session.ts";
import { signIn } from "./session-calls.ts";
import type { SignInOptions } from "./types.ts";

const SignInByName = screen(() => import("./sign-in-by-name.tsx").then((m) => m.SignInByName));

/** The sign-in. After it the reader sees the screen of the address. */
export function SignIn() {
  const [isByName, setByName] = useState(false);
  const options = useApi<SignInOptions>("/console/api/sign-in").data;
  useEffect(() => {
    document.title = "Sign in · genmesh";
  }, []);
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <Brand />
        <h1>Sign in</h1>
        {hasEnded.value && (
          <Notice tone="warn">
            Your session has ended: it was idle for too long, or its key was changed.
          </Notice>
        )}
        <ErrorBoundary>
          {isByName ? <SignInByName /> : <SignInBySecret isForOperators={options?.operator} />}
        </ErrorBoundary>
        {options?.operator && (
          <button type="button" class="block" onClick={() => setByName(!isByName)}>
            {isByName ? "Use an API key or admin token" : "Use an operator's name and password"}
          </button>
        )}
        {options?.oidc && (
          <a class="button block" href={options.oidc.url} target="_top">
            {options.oidc.label}
          </a>
        )}
        <p class="fine">
          No key yet? <code>npm start</code> prints one of a demo account. An operator makes others,
          here or with <code>genmesh key create</code>.
        </p>
      </div>
    </main>
  );
}

/** A form of one field. */
function SignInBySecret({ isForOperators }: { isForOperators: boolean | undefined }) {
  const [secret, setSecret] = useState("");
  const action = useAction(() => signIn(secret.trim()));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        action.run();
      }}
    >
      <TextField
        label={isForOperators ? "API key or admin token" : "API key"}
        hint="It is exchanged for a session of up to 8 hours, and not kept in this browser."
        type="password"
        name="secret"
        autocomplete="current-password"
        required
        autoFocus
        value={secret}
        onValue={setSecret}
      />
      <ErrorText error={action.error} />
      <button type="submit" class="primary block" disabled={action.isBusy}>
        Sign in
      </button>
    </form>
  );
}

export function Brand() {
  return (
    <span class="brand">
      <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
        <path
          d="M10 1.5 17.5 6v8L10 18.5 2.5 14V6zM2.5 6 10 10.5 17.5 6M10 10.5v8"
          fill="none"
          stroke="currentColor"
          stroke-width="1.6"
          stroke-linejoin="round"
        />
      </svg>
      genmesh
    </span>
  );
}
