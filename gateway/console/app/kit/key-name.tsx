import { keyNames } from "../key-names.ts";
import { ShortId } from "./values.tsx";

/** A key's name where it is known, otherwise its id. */
export function KeyName({ id }: { id: string | null }) {
  if (id === null) return <span class="muted">none</span>;
  const name = keyNames.value.get(id);
  return name ? <span title={id}>{name}</span> : <ShortId id={id} />;
}
