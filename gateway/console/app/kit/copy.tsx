// Shows text to be copied, and the button for it.

import { toast } from "./toast.tsx";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  return (
    <button
      type="button"
      class="small"
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        toast("Copied.");
      }}
    >
      {label}
    </button>
  );
}

/** Text for a terminal or an editor. It scrolls sideways, so the keyboard must be able to reach it. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <figure class="code" aria-label={label}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach content that scrolls. */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} />
    </figure>
  );
}
