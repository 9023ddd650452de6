// The form by which an operator signs in by name.

import { useState } from "preact/hooks";
import { useAction } from "./hooks.ts";
import { TextField } from "./kit/form.tsx";
import { ErrorText } from "./kit/states.tsx";
import { signInByName } from "./session-calls.ts";

/** The form of an operator with a name. All three are sent together, so that no answer says which of them is wrong. */
export function SignInByName() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const action = useAction(async () => {
    await signInByName({ name: name.trim(), password, code: code.trim() }).catch((error) => {
      // A code works once, so the next try needs another one.
      setCode("");
      throw error;
    });
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        action.run();
      }}
    >
      <TextField
        label="Name"
        name="username"
        autocomplete="username"
        required
        autoFocus
        maxLength={64}
        value={name}
        onValue={setName}
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autocomplete="current-password"
        required
        maxLength={200}
        value={password}
        onValue={setPassword}
      />
      <TextField
        label="Code"
        hint="Six digits of your authenticator, or a recovery code."
        name="code"
        autocomplete="one-time-code"
        required
        maxLength={24}
        value={code}
        onValue={setCode}
      />
      <ErrorText error={action.error} />
      <button type="submit" class="primary block" disabled={action.isBusy}>
        Sign in
      </button>
    </form>
  );
}
