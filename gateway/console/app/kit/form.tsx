// The controls of all forms, each with its label and hint.

import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useId } from "preact/hooks";

interface Labelled {
  label: string;
  hint?: ComponentChildren;
  /** The error of the value, in words. */
  error?: string | undefined;
}

/** A label, its control, and a hint. `children` gets the attributes that connect them. */
export function Field({
  label,
  hint,
  error,
  children,
}: Labelled & {
  children(tie: {
    id: string;
    "aria-describedby"?: string;
    "aria-invalid"?: boolean;
  }): ComponentChildren;
}) {
  const id = useId();
  const hintId = `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...((hint || error) && { "aria-describedby": hintId }),
        ...(error && { "aria-invalid": true }),
      })}
      {(hint || error) && (
        <p class={error ? "field-error" : "hint"} id={hintId}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

export function TextField({
  value,
  onValue,
  label,
  hint,
  error,
  ...rest
}: Labelled & {
  value: string;
  onValue(value: string): void;
  type?: "text" | "search" | "password" | "url" | "number" | "date" | "datetime-local";
  name?: string;
  required?: boolean;
  placeholder?: string;
  maxLength?: number;
  min?: string | number;
  max?: string | number;
  step?: string | number;
  list?: string;
  autocomplete?: string;
  autoFocus?: boolean;
  disabled?: boolean;
  onFocus?: () => void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(tie) => (
        <input
          type="text"
          spellcheck={false}
          // The kinds of inputs are a union of types. A variable kind fits none of them.
          {...(rest as InputHTMLAttributes<HTMLInputElement>)}
          {...tie}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function TextArea({
  value,
  onValue,
  label,
  hint,
  error,
  ...rest
}: Labelled & {
  value: string;
  onValue(value: string): void;
  rows?: number;
  maxLength?: number;
  placeholder?: string;
  required?: boolean;
  onKeyDown?: (event: KeyboardEvent) => void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(tie) => (
        <textarea
          rows={4}
          {...rest}
          {...tie}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export type Choice = string | { value: string; label: string };

export function Select({
  value,
  onValue,
  label,
  hint,
  choices,
  disabled,
}: Labelled & {
  value: string;
  onValue(value: string): void;
  choices: readonly Choice[];
  disabled?: boolean;
}) {
  return (
    <Field label={label} hint={hint}>
      {(tie) => (
        <select
          {...tie}
          value={value}
          disabled={disabled}
          onChange={(event) => onValue(event.currentTarget.value)}
        >
          {choices.map((choice) => {
            const one = typeof choice === "string" ? { value: choice, label: choice } : choice;
            return (
              <option key={one.value} value={one.value}>
                {one.label}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

export function Checkbox({
  checked,
  onChecked,
  label,
  disabled,
}: {
  checked: boolean;
  onChecked(checked: boolean): void;
  label: ComponentChildren;
  disabled?: boolean;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChecked(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}

/** Several checkboxes under one heading. */
export function Checks({
  legend,
  hint,
  choices,
  chosen,
  onChosen,
}: {
  legend: string;
  hint?: ComponentChildren;
  choices: readonly Choice[];
  chosen: readonly string[];
  onChosen(chosen: string[]): void;
}) {
  return (
    <fieldset class="field">
      <legend>{legend}</legend>
      <div class="checks">
        {choices.map((choice) => {
          const one = typeof choice === "string" ? { value: choice, label: choice } : choice;
          return (
            <Checkbox
              key={one.value}
              label={one.label}
              checked={chosen.includes(one.value)}
              onChecked={(checked) =>
                onChosen(
                  checked ? [...chosen, one.value] : chosen.filter((value) => value !== one.value),
                )
              }
            />
          );
        })}
      </div>
      {hint && <p class="hint">{hint}</p>}
    </fieldset>
  );
}

/** A few values side by side, one of which is chosen. */
export function Segments({
  label,
  value,
  onValue,
  choices,
}: {
  label: string;
  value: string;
  onValue(value: string): void;
  choices: readonly { value: string; label: ComponentChildren; title?: string }[];
}) {
  return (
    <fieldset class="segments">
      <legend class="unseen">{label}</legend>
      {choices.map((choice) => (
        <button
          type="button"
          key={choice.value}
          title={choice.title}
          aria-pressed={choice.value === value}
          onClick={() => onValue(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </fieldset>
  );
}
