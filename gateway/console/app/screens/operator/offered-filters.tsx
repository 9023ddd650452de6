// The operator's filters by account, model and upstream. Each offers what there is once the reader turns to it.

import { useEffect, useState } from "preact/hooks";
import { queryOf } from "../../api.ts";
import { type Filter, OfferedField, useOnceFocused } from "../../offered-filters.tsx";
import { type Account, type AdminList, admin, type Catalog, type Upstreams } from "./types.ts";

/** Accounts that are offered at once: those whose name or id begins with the text. */
const mostOffered = 20;

/** A filter by an account. The reader types the beginning of its name, and chooses it, or gives its id. */
export function AccountFilter({ value, onValue }: Filter) {
  const [text, setText] = useState(value);
  // A link may change the filter too.
  useEffect(() => setText(value), [value]);
  // The account that is chosen already is no beginning of others.
  const query = text === value ? undefined : text;
  const { data, onFocus } = useOnceFocused<AdminList<Account>>(
    `${admin}/accounts${queryOf({ query, limit: mostOffered })}`,
  );
  return (
    <OfferedField
      label="Account"
      placeholder="name or acct_…"
      offers={data?.data}
      onFocus={onFocus}
      value={text}
      onValue={(typed) => {
        setText(typed);
        // The beginning of a name is not an account yet.
        if (typed === "" || typed.startsWith("acct_")) onValue(typed);
      }}
    />
  );
}

/** A filter by a model. It takes models that the catalog no longer has, too. */
export function CatalogModelFilter(filter: Filter) {
  const { data, onFocus } = useOnceFocused<Catalog>(`${admin}/catalog`);
  return (
    <OfferedField
      label="Model"
      placeholder="all models"
      offers={data?.models}
      onFocus={onFocus}
      {...filter}
    />
  );
}

/** A filter by an upstream. It takes upstreams that the catalog no longer has, too. */
export function UpstreamFilter(filter: Filter) {
  const { data, onFocus } = useOnceFocused<Upstreams>(`${admin}/upstreams`);
  return (
    <OfferedField
      label="Upstream"
      placeholder="all upstreams"
      offers={data?.data.map(({ name }) => ({ id: name }))}
      onFocus={onFocus}
      {...filter}
    />
  );
}
