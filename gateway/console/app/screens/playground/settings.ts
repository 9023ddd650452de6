import { useState } from "preact/hooks";
import { queryOf } from "../../api.ts";
import type { ModelKind } from "../../types.ts";

/** What a form of the playground holds, as it is typed: names as in a link. */
export type Settings = Readonly<Record<string, string>>;

export interface Form {
  settings: Settings;
  /** "" takes a setting out. */
  set(change: Settings): void;
}

/** The forms as they were left, as long as the page is open: prompts are written to no storage of the browser. */
const left = new Map<ModelKind, Settings>();

/**
 * The settings of one playground. A link carries them after its `#`, which no browser sends to a server: prompts stay out
 * of every log.
 */
export function useSettings(kind: ModelKind): Form {
  const [settings, setSettings] = useState<Settings>(() => {
    const linked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    return Object.keys(linked).length > 0 ? linked : (left.get(kind) ?? {});
  });
  const set = (change: Settings) =>
    setSettings((before) => {
      const after = { ...before, ...change };
      left.set(kind, after);
      return after;
    });
  return { settings, set };
}

/** The address that opens a playground with these settings. */
export function linkTo(kind: string, model: string, settings: Settings): string {
  const rest = queryOf(settings).slice(1);
  return `/console/playground${queryOf({ kind, model })}${rest && `#${rest}`}`;
}

/** Settings of a playground from another screen, which the reader goes to next. */
export function leave(kind: ModelKind, settings: Settings): void {
  left.set(kind, settings);
}

/** Those that are set, as numbers where the API wants numbers; "" is absent. */
export function present(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined && value !== ""),
  );
}

export function numberOf(text: string | undefined): number | undefined {
  const value = text === undefined || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** A list of ids in one setting. */
export function idsOf(text: string | undefined): string[] {
  return text ? text.split(",") : [];
}
