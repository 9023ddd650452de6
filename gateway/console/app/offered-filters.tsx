// Filters of lists that offer the models and keys that there are.

import { useId, useState } from "preact/hooks";
import { useApi } from "./hooks.ts";
import { keyNames, loadKeyNames } from "./key-names.ts";
import { TextField } from "./kit/form.tsx";
import { may } from "./session.ts";
import type { List, Model } from "./types.ts";

interface Filter {
  value: string;
  onValue(value: string): void;
}

/** A filter by the id of a model. It offers those of the catalog once the reader turns to it, and takes former ones too. */
export function ModelFilter({ value, onValue }: Filter) {
  const [isAsked, setAsked] = useState(false);
  const list = useId();
  const loaded = useApi<List<Model>>(isAsked && may("models") ? "/models" : null);
  return (
    <>
      <TextField
        label="Model"
        placeholder="all models"
        list={list}
        onFocus={() => setAsked(true)}
        {...{ value, onValue }}
      />
      <datalist id={list}>
        {loaded.data?.data.map(({ id, name }) => (
          <option key={id} value={id} label={name} />
        ))}
      </datalist>
    </>
  );
}

/** A filter by the id of a key. It offers the account's keys by their names. */
export function KeyFilter({ value, onValue }: Filter) {
  const list = useId();
  return (
    <>
      <TextField
        label="Key"
        placeholder="all keys"
        list={list}
        onFocus={() => void loadKeyNames()}
        {...{ value, onValue }}
      />
      <datalist id={list}>
        {[...keyNames.value].map(([id, name]) => (
          <option key={id} value={id} label={name} />
        ))}
      </datalist>
    </>
  );
}
