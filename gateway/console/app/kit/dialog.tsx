// Asks a question in front of the page. All dialogs of the console are made of it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { giveFocusBack, useAction } from "../hooks.ts";
import { ErrorText } from "./states.tsx";

/**
 * A question in front of the page, by the browser's own dialog. The rest is inert, Escape closes it, and the focus returns to its
 * place. The dialog is open while it is rendered.
 */
export function Dialog({
  title,
  onClose,
  wide,
  full,
  children,
}: {
  title: string;
  onClose(): void;
  wide?: boolean;
  /** As large as the window allows. */
  full?: boolean;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
      giveFocusBack(opener);
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={full ? "full" : wide ? "wide" : undefined}
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

/** A dialog with a form. It shows errors, and stays open until the action has succeeded. */
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
  /** The button's text: the action, not "OK". */
  submit: string;
  isDangerous?: boolean;
  /** The dialog closes by itself after a success. */
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
