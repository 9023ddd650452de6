// The states of a part of a screen that has nothing to show yet: waiting, empty, failed.

import type { ComponentChildren } from "preact";
import { ApiError } from "../api.ts";

/** The error in words, with the details that support asks for. `retry` is given where another try may help. */
export function ErrorText({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  if (!error) return null;
  const known = error instanceof ApiError ? error : undefined;
  return (
    <div class="error" role="alert">
      <p>{known?.message ?? "Something in this page went wrong. Reload it, please."}</p>
      {known?.code && (
        <p class="fine">
          <code>{known.code}</code>
          {known.requestId && (
            <>
              {" · request "}
              <code class="id">{known.requestId}</code>
            </>
          )}
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Why something failed that the service had accepted: its words, and the code for support. */
export function Failure({ of }: { of: { message: string; code?: string | null } }) {
  return (
    <div class="error">
      <p>{of.message}</p>
      {of.code && (
        <p class="fine">
          <code>{of.code}</code>
        </p>
      )}
    </div>
  );
}

/** An empty list, with the next step for the reader. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Takes the room of data that still loads, so that nothing moves when it comes. */
export function Waiting({ lines = 3 }: { lines?: number }) {
  return (
    <div class="waiting" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <span class="bone" key={line} />
      ))}
    </div>
  );
}

/** A notice that stays, unlike a toast. */
export function Notice({
  tone = "plain",
  children,
}: {
  tone?: "plain" | "warn" | "good";
  children: ComponentChildren;
}) {
  return <div class={`notice ${tone}`}>{children}</div>;
}
