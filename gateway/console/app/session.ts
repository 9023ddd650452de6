import { signal } from "@preact/signals";
import type { Session } from "./types.ts";

/** Undefined: not asked yet; null: no user is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** Why the reader sees the sign-in form again. */
export const hasEnded = signal(false);

/** The session is over: idle for too long, or its key was revoked or rotated. */
export function endSession(): void {
  if (session.value) hasEnded.value = true;
  session.value = null;
}

/** Are there jobs for the reader to see: its own, or the account's? */
export const seesJobs = () => ["images", "videos", "music", "jobs:read-all"].some(may);

export function may(scope: string): boolean {
  return session.value?.scopes.includes(scope) ?? false;
}
