// The dialog that asks for the secret again before keys are made or money is moved. `secret.ts` says when.

import { useState } from "preact/hooks";
import { Dialog, FormDialog } from "./kit/dialog.tsx";
import { TextField } from "./kit/form.tsx";
import { type SecretQuestion, secretQuestion } from "./secret.ts";
import { session } from "./session.ts";

/** Asks for the secret before keys are made, money is moved or holds are settled. */
export function SecretDialog() {
  const question = secretQuestion.value;
  const [secret, setSecret] = useState("");
  if (!question) return null;
  const answer = (value: string | null) => {
    setSecret("");
    question.answer(value);
  };
  if (session.value?.oidc) return <AskProvider onClose={() => answer(null)} />;
  if (session.value?.operatorName) return <AskProof question={question} />;
  const what = session.value?.role === "operator" ? "admin token" : "API key";
  return (
    <FormDialog
      title="Confirm that it is you"
      submit="Confirm"
      onClose={() => answer(null)}
      onSubmit={async () => answer(secret.trim())}
    >
      <TextField
        label={`Your ${what}`}
        hint={`The ${what} that you signed in with. It is sent with this one action and not kept.`}
        error={question.isSecondTry ? `This is not the ${what} of your session.` : undefined}
        type="password"
        autocomplete="current-password"
        required
        autoFocus
        value={secret}
        onValue={setSecret}
      />
    </FormDialog>
  );
}

/**
 * An operator with a name gives password and code. A code alone would be enough for a stranger at an unlocked desk with the phone on it. The
 * answer counts for some minutes, because each code works once.
 */
function AskProof({ question }: { question: SecretQuestion }) {
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  return (
    <FormDialog
      title="Confirm that it is you"
      submit="Confirm"
      onClose={() => question.answer(null)}
      onSubmit={async () => {
        const proof = `${code.replace(/\s/g, "")} ${encodeURIComponent(password)}`;
        setCode("");
        question.answer(proof);
      }}
    >
      <TextField
        label="Your password"
        hint="After this nothing more is asked for 5 minutes."
        type="password"
        autocomplete="current-password"
        required
        autoFocus
        value={password}
        onValue={setPassword}
      />
      <TextField
        label="Your code"
        hint="A new one of your authenticator, or a recovery code."
        error={
          question.isSecondTry ? "Password or code is wrong. Each code works once." : undefined
        }
        name="code"
        autocomplete="one-time-code"
        required
        maxLength={24}
        value={code}
        onValue={setCode}
      />
    </FormDialog>
  );
}

/** A reader who signed in at an identity provider has no secret here. The provider asks for the password again. */
function AskProvider({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Confirm that it is you" onClose={onClose}>
      <div class="stack">
        <p>
          Your identity provider asks for your password once more. After that you come back to the
          console, and do this again: for 5 minutes nothing more is asked.
        </p>
        <div class="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <a class="button primary" href="/console/api/oidc/begin?again=1" target="_top">
            Go to the provider
          </a>
        </div>
      </div>
    </Dialog>
  );
}
