// Shows a key by its name in lists.

import { useEffect } from "preact/hooks";
import { keyNames, loadKeyNames } from "../key-names.ts";
import { ShortId } from "./values.tsx";

/** A key's name where the reader may see it, otherwise its id. Names are asked for once a page. */
export function KeyName({ id }: { id: string | null }) {
  const name = id === null ? undefined : keyNames.value.get(id);
  const isUnknown = id !== null && name === undefined;
  useEffect(() => {
    if (isUnknown) void loadKeyNames();
  }, [isUnknown]);
  if (id === null) return <span class="muted">none</span>;
  return name ? <span title={id}>{name}</span> : <ShortId id={id} />;
}
