// Filters of lists that offer the models and keys that there are.

import { useId, useState } from "preact/hooks";
import { useApi } from "./hooks.ts";
import { keyNames, loadKeyNames } from "./key-names.ts";
import { TextField } from "./kit/form.tsx";
import { may } from "./session.ts";
import type { List, Model } from "./types.ts";

export interface Filter {
  value: string;
  onValue(value: string): void;
}

/** A value and its name, where it has another. */
export interface Offer {
  id: string;
  name?: string;
}

/** A field that offers values and takes others too. */
export function OfferedField({
  label,
  placeholder,
  offers,
  onFocus,
  value,
  onValue,
}: Filter & {
  label: string;
  placeholder: string;
  offers: readonly Offer[] | undefined;
  /** The reader turns to the field: its offers may be loaded now. */
  onFocus(): void;
}) {
  const list = useId();
  return (
    <>
      <TextField {...{ label, placeholder, list, onFocus, value, onValue }} />
      <datalist id={list}>
        {offers?.map(({ id, name }) => (
          <option key={id} value={id} label={name} />
        ))}
      </datalist>
    </>
  );
}

/** The answer of the API at a path, which is asked for once the reader turns to the field. */
export function useOnceFocused<T>(path: string | null) {
  const [isFocused, setFocused] = useState(false);
  const { data } = useApi<T>(isFocused ? path : null);
  return { data, onFocus: () => setFocused(true) };
}

/** A filter by the id of a model. It offers those of the catalog once the reader turns to it, and takes former ones too. */
export function ModelFilter({ value, onValue }: Filter) {
  const { data, onFocus } = useOnceFocused<List<Model>>(may("models") ? "/models" : null);
  return (
    <OfferedField
      label="Model"
      placeholder="all models"
      offers={data?.data}
      {...{ onFocus, value, onValue }}
    />
  );
}

/** A filter by the id of a key. It offers the account's keys by their names. */
export function KeyFilter({ value, onValue }: Filter) {
  return (
    <OfferedField
      label="Key"
      placeholder="all keys"
      offers={[...keyNames.value].map(([id, name]) => ({ id, name }))}
      onFocus={() => void loadKeyNames()}
      {...{ value, onValue }}
    />
  );
}
