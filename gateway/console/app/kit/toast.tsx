// Shows for a moment that an action is done.

import { signal } from "@preact/signals";

/** Ms for which a toast stays: long enough to read it twice. */
const toastMs = 5_000;

const toasts = signal<{ id: number; text: string }[]>([]);
let lastId = 0;

/** Tells that an action is done. An error is shown at the action itself, and stays. */
export function toast(text: string): void {
  lastId += 1;
  const id = lastId;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one.id !== id);
  }, toastMs);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((one) => (
        <p key={one.id}>{one.text}</p>
      ))}
    </div>
  );
}
