// The calls that begin, load and end a session.

import { ApiError, call } from "./api.ts";
import { forgetAll } from "./browser-store.ts";
import { hasEnded, session } from "./session.ts";
import type { Session } from "./types.ts";

const path = "/console/api/session";

/** Asks which user is signed in, if one is. Where the service does not answer, the sign-in form is shown and reports that. */
export async function loadSession(): Promise<void> {
  try {
    session.value = await call<Session>(path);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    session.value = null;
  }
}

/** Signs in with an API key or the admin token. */
export const signIn = (secret: string) => begin({ secret });

/** Signs in as an operator with a name. */
export const signInByName = (proof: { name: string; password: string; code: string }) =>
  begin(proof);

async function begin(body: object): Promise<void> {
  const made = await call<Session>(path, { method: "POST", body });
  hasEnded.value = false;
  session.value = made;
}

export async function signOut(): Promise<void> {
  await call(path, { method: "DELETE" });
  await forgetAll();
  hasEnded.value = false;
  session.value = null;
}
