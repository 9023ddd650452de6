// The behaviour that screens share: loading, reloading, filters and pages in the address, focus, actions.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { type CallOptions, Cancelled, call, queryOf } from "./api.ts";
import { session } from "./session.ts";

export interface Loaded<T> {
  /** Stays during a reload, so that nothing on the page jumps. */
  data: T | undefined;
  error: unknown;
  isLoading: boolean;
  reload(): void;
  /** Sets known data without a request. */
  set(change: (data: T) => T): void;
}

/** Requests `path` now, and again whenever it changes. Null: no request yet. `ask` makes the request, and stays the same function. */
export function useApi<T>(
  path: string | null,
  ask: (path: string, options: CallOptions) => Promise<T> = call,
): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; isLoading: boolean }>({
    isLoading: path !== null,
  });
  const [turn, setTurn] = useState(0);
  // A change of `turn` repeats the request for the same path.
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    ask(path, { signal: abort.signal }).then(
      (data) => !abort.signal.aborted && setState({ data, isLoading: false }),
      (error) =>
        !abort.signal.aborted && setState((before) => ({ ...before, error, isLoading: false })),
    );
    return () => abort.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const set = useCallback((change: (data: T) => T) => {
    setState((before) =>
      before.data === undefined ? before : { ...before, data: change(before.data) },
    );
  }, []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload, set };
}

/** Ms after which a screen reloads data that changes by itself. */
const reloadMs = 10_000;

/** Loads again and again while the page is visible and `isOn`. */
export function useReloading(isOn: boolean, ...reloads: (() => void)[]): void {
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") for (const reload of reloads) reload();
    }, reloadMs);
    return () => clearInterval(timer);
  }, [isOn, ...reloads]);
}

/**
 * The query of the address. Filters are kept there, so that a link shows another reader the same list. A change of a filter goes back
 * to the first page.
 */
export function useFilters() {
  const { query, path, route } = useLocation();
  const set = (change: Record<string, string | undefined>) => {
    const { after: _after, ...filters } = query;
    route(path + queryOf({ ...filters, ...change }), true);
  };
  return { query, set };
}

/** The pages of a list. The address has the beginning of the page. The beginnings of earlier pages are kept here. */
export function usePages() {
  const { query, path, route } = useLocation();
  const before = useRef<string[]>([]);
  const go = (after: string | undefined) => route(path + queryOf({ ...query, after }));
  return {
    after: query.after,
    next(cursor: string) {
      before.current.push(query.after ?? "");
      go(cursor);
    },
    /** Undefined on the first page. */
    previous: query.after === undefined ? undefined : () => go(before.current.pop() || undefined),
  };
}

/**
 * Gives the focus back after an action or a dialog, unless it is elsewhere by then. A button loses it while it is off. Where the button is
 * gone, as with the row that it deleted, the screen's heading gets the focus.
 */
export function giveFocusBack(before: Element | null): void {
  requestAnimationFrame(() => {
    if (document.activeElement !== document.body) return;
    if (before instanceof HTMLElement && before.isConnected) before.focus();
    else document.querySelector("h1")?.focus();
  });
}

/** Runs an action of the reader, once at a time. A failure is `error`. */
export function useAction<A extends unknown[]>(act: (...values: A) => Promise<void>) {
  const [state, setState] = useState<{ error?: unknown; isBusy: boolean }>({ isBusy: false });
  const run = async (...values: A) => {
    if (state.isBusy) return;
    setState({ isBusy: true });
    const pressed = document.activeElement;
    const wasSignedIn = Boolean(session.value);
    try {
      await act(...values);
      setState({ isBusy: false });
    } catch (error) {
      // The sign-in form itself shows that a session has ended.
      const hasLeft = wasSignedIn && session.value === null;
      const isSilent = error instanceof Cancelled || hasLeft;
      setState(isSilent ? { isBusy: false } : { error, isBusy: false });
    }
    giveFocusBack(pressed);
  };
  return { ...state, run };
}
