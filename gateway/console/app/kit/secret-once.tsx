import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

export interface NewSecret {
  name: string;
  /** Null in a repeat of a creation, because secrets are not kept. */
  secret: string | null;
}

/** Shows a key's secret for the only time. */
export function SecretOnce({ made, onClose }: { made: NewSecret; onClose(): void }) {
  if (made.secret === null) {
    return (
      <Dialog title="The key was made before" onClose={onClose}>
        <div class="stack">
          <p>Its secret was in an answer that got lost, and is not kept. Rotate the key at once.</p>
          <div class="dialog-actions">
            <button type="button" class="primary" onClick={onClose}>
              Close
            </button>
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <ShownOnce
      title={`The secret of ${made.name || "the key"}`}
      lead="Copy it now: it is shown once, and is not kept here."
      text={made.secret}
      onClose={onClose}
    />
  );
}

/** Shows a text for the only time. Escape does not close it, because the text cannot be shown again. */
export function ShownOnce({
  title,
  lead,
  text,
  onClose,
}: {
  title: string;
  lead: string;
  text: string;
  onClose(): void;
}) {
  return (
    <Dialog title={title} onClose={() => undefined}>
      <div class="stack">
        <p>{lead}</p>
        <div class="secret">
          <code class="id">{text}</code>
          <CopyButton text={text} />
        </div>
        <div class="dialog-actions">
          <button type="button" class="primary" onClick={onClose}>
            I have copied it
          </button>
        </div>
      </div>
    </Dialog>
  );
}
