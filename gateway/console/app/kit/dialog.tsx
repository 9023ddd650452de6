import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useAction } from "../hooks.ts";
import { ErrorText } from "./states.tsx";

/**
 * A question in front of the page, by the browser's own dialog: the rest is inert, Escape closes, and the focus goes back
 * to where it was. It is there while it is rendered.
 */
export function Dialog({
  title,
  onClose,
  wide,
  children,
}: {
  title: string;
  onClose(): void;
  wide?: boolean;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/** A dialog with a form: what goes wrong is said in it, and it stays open until the action has succeeded. */
export function FormDialog({
  title,
  submit,
  isDangerous,
  onSubmit,
  onClose,
  wide,
  children,
}: {
  title: string;
  /** What the button says: the action, not "OK". */
  submit: string;
  isDangerous?: boolean;
  /** Closes the dialog by itself where it succeeds. */
  onSubmit(): Promise<void>;
  onClose(): void;
  wide?: boolean;
  children?: ComponentChildren;
}) {
  const action = useAction(onSubmit);
  return (
    <Dialog title={title} onClose={onClose} {...(wide && { wide })}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        {children}
        <ErrorText error={action.error} />
        <div class="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={action.isBusy}>
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
