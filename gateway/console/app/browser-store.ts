// Keeps conversations and forms of jobs in this browser, where the reader wants that. No server has them.

import { signal } from "@preact/signals";
import { session } from "./session.ts";

/** The kinds of things that the browser keeps, and the most of each. Older ones are deleted. */
const most = { chat: 50, job: 200 } as const;

type Kind = keyof typeof most;

export interface Kept<T> {
  id: string;
  /** Ms since the epoch. */
  at: number;
  value: T;
}

type Row = Kept<unknown> & { owner: string; kind: Kind };

const setting = "keep";
const [database, table] = ["genmesh", "kept"];

/** Does this browser keep conversations and the forms of jobs? It is the reader's choice, as for the theme. */
export const isKeeping = signal(localStorage.getItem(setting) !== "no");

/** Keeps from now on, or deletes all and keeps nothing. */
export async function setKeeping(isOn: boolean): Promise<void> {
  isKeeping.value = isOn;
  if (isOn) localStorage.removeItem(setting);
  else {
    localStorage.setItem(setting, "no");
    await forgetAll();
  }
}

/** Another key or operator that signs in here does not see it. */
function ownerOf(): string {
  const { value } = session;
  return value?.keyId ?? value?.accountId ?? "";
}

const rangeOf = (kind: Kind) => IDBKeyRange.bound([ownerOf(), kind], [ownerOf(), kind, []]);

/** Keeps a thing of this session's key, in place of an earlier one of that id. Undefined where it is not kept. */
export async function keep<T>(kind: Kind, id: string, value: T): Promise<Kept<T> | undefined> {
  if (!isKeeping.value) return undefined;
  const row = { owner: ownerOf(), kind, id, at: Date.now(), value } satisfies Row;
  const key = await within("readwrite", (rows) => rows.put(row));
  return key === undefined ? undefined : row;
}

/** Things of a kind of this session's key, newest first. */
export async function keptOf<T>(kind: Kind): Promise<Kept<T>[]> {
  if (!isKeeping.value) return [];
  const all = (await within("readonly", (rows) => rows.getAll(rangeOf(kind)))) ?? [];
  const rows = (all as Kept<T>[]).sort((one, other) => other.at - one.at);
  for (const { id } of rows.slice(most[kind])) void forgetKept(kind, id);
  return rows.slice(0, most[kind]);
}

export async function forgetKept(kind: Kind, id: string): Promise<void> {
  await within("readwrite", (rows) => rows.delete([ownerOf(), kind, id]));
}

/** In the tab's own store: forms that are not sent yet. */
const forms = "forms";

/** Keeps the values of forms in this tab alone, so that a reload for a newer build takes none away. */
export function keepForms<T>(values: readonly T[]): void {
  if (!isKeeping.value) return;
  try {
    sessionStorage.setItem(forms, JSON.stringify({ owner: ownerOf(), values }));
  } catch {
    // There is no room for them. The page still has them.
  }
}

/** The forms that this session's key left in this tab. */
export function keptForms<T>(): T[] {
  const { owner, values } = JSON.parse(sessionStorage.getItem(forms) ?? "{}");
  return owner === ownerOf() ? values : [];
}

/** Deletes what this browser keeps, of every key. */
export async function forgetAll(): Promise<void> {
  sessionStorage.removeItem(forms);
  await within("readwrite", (rows) => rows.clear());
}

/** Does one step in the store. Undefined where the browser has no store, or refuses the step. Never rejects. */
function within<T>(
  mode: IDBTransactionMode,
  step: (rows: IDBObjectStore) => IDBRequest<T>,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore(table, { keyPath: ["owner", "kind", "id"] });
    };
    opening.onerror = () => resolve(undefined);
    opening.onsuccess = () => {
      const done = opening.result.transaction(table, mode);
      const stepping = step(done.objectStore(table));
      done.oncomplete = () => resolve(stepping.result);
      done.onabort = () => resolve(undefined);
      done.onerror = () => resolve(undefined);
      opening.result.close();
    };
  });
}
