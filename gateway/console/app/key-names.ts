// Remembers the names of the account's keys, so that lists show names in place of ids.

import { signal } from "@preact/signals";
import { call } from "./api.ts";
import { may, session } from "./session.ts";
import type { Key, List } from "./types.ts";

/** Names of the account's keys by their ids, as far as a screen has asked for them. */
export const keyNames = signal<ReadonlyMap<string, string>>(new Map());

let isAsked = false;

// Another key may sign in to this page.
session.subscribe((value) => {
  if (value) return;
  isAsked = false;
  keyNames.value = new Map();
});

export function rememberKeys(keys: readonly Key[]): void {
  const names = keys.filter((key) => key.name).map((key) => [key.id, key.name] as const);
  keyNames.value = new Map([...keyNames.value, ...names]);
}

/** Keys of a page, the most that the API gives. */
const pageSize = 100;
/** The most names to load. An account with more keys sees the other keys' ids. */
const maxNames = 1_000;

/** Asks once. A screen shows ids where the reader may not list keys. */
export async function loadKeyNames(): Promise<void> {
  if (isAsked || !may("keys")) return;
  isAsked = true;
  for (let offset = 0; offset < maxNames; offset += pageSize) {
    const path = `/keys?limit=${pageSize}&offset=${offset}&include_disabled=true`;
    const keys = await call<List<Key>>(path).catch(() => null);
    if (keys) rememberKeys(keys.data);
    if (!keys || keys.data.length < pageSize) return;
  }
}
