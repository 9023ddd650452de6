import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

export interface NewSecret {
  name: string;
  /** Null in a repeat of a creation, because secrets are not kept. */
  secret: string | null;
}

/** Shows a secret for the only time. Escape does not close it, because the secret cannot be shown again. */
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
    <Dialog title={`The secret of ${made.name || "the key"}`} onClose={() => undefined}>
      <div class="stack">
        <p>Copy it now: it is shown this once, and is kept by nobody but you.</p>
        <div class="secret">
          <code class="id">{made.secret}</code>
          <CopyButton text={made.secret} />
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
