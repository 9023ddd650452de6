// Keeps the values of a playground's form in its address, so that a link opens the same form.

import { useState } from "preact/hooks";
import { queryOf } from "../../api.ts";
import { keepForms, keptForms } from "../../browser-store.ts";
import { session } from "../../session.ts";
import type { ModelKind } from "../../types.ts";

/** The typed values of a playground's form, with the names of a link. */
export type Settings = Readonly<Record<string, string>>;

export interface Form {
  settings: Settings;
  /** "" removes a setting. */
  set(change: Settings): void;
  /** Takes these settings in place of all. */
  replace(settings: Settings): void;
}

type Left = [kind: ModelKind, settings: Settings];

/** The forms' last values. The tab keeps them over a reload, too. */
const left = new Map<ModelKind, Settings>();

// Another key may sign in to this page.
session.subscribe((value) => {
  left.clear();
  if (value) for (const [kind, settings] of keptForms<Left>()) left.set(kind, settings);
});

function remember(kind: ModelKind, settings: Settings): void {
  left.set(kind, settings);
  keepForms<Left>([...left]);
}

/**
 * The settings of one playground. A link has them after its `#`. No browser sends that part to a server, so prompts stay out of every
 * log.
 */
export function useSettings(kind: ModelKind): Form {
  const [settings, setSettings] = useState<Settings>(() => {
    const linked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    return Object.keys(linked).length > 0 ? linked : (left.get(kind) ?? {});
  });
  const set = (change: Settings) =>
    setSettings((before) => {
      const after = { ...before, ...change };
      remember(kind, after);
      return after;
    });
  const replace = (other: Settings) => {
    remember(kind, other);
    setSettings(other);
  };
  return { settings, set, replace };
}

/** The address that opens a playground with these settings. */
export function linkTo(kind: string, model: string, settings: Settings): string {
  const rest = queryOf(settings).slice(1);
  return `/console/playground${queryOf({ kind, model })}${rest && `#${rest}`}`;
}

/** Takes settings from another screen for the playground that the reader opens next. */
export function leave(kind: ModelKind, settings: Settings): void {
  remember(kind, settings);
}
