// The reader's session and rights, as the whole page knows them. `session-calls.ts` changes it.

import { signal } from "@preact/signals";
import type { Session } from "./types.ts";

/** Undefined: not asked yet. Null: no user is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** Has the reader's session ended? Then the sign-in form says so. */
export const hasEnded = signal(false);

/** The session is over: idle for too long, or its key was deleted or rotated. */
export function endSession(): void {
  if (session.value) hasEnded.value = true;
  session.value = null;
}

/** May the reader see jobs: its own, or the account's? */
export const seesJobs = () => ["images", "videos", "music", "jobs:read-all"].some(may);

export function may(scope: string): boolean {
  return session.value?.scopes.includes(scope) ?? false;
}
