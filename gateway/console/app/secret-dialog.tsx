import { useState } from "preact/hooks";
import { Dialog, FormDialog } from "./kit/dialog.tsx";
import { TextField } from "./kit/form.tsx";
import { secretQuestion } from "./secret.ts";
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
