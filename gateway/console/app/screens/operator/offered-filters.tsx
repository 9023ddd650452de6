// The operator's filters by account, model and upstream. Each offers what there is once the reader turns to it.

import { useEffect, useState } from "preact/hooks";
import { queryOf } from "../../api.ts";
import { useApi } from "../../hooks.ts";
import { type Filter, OfferedField } from "../../offered-filters.tsx";
import { type Account, type AdminList, admin, type Catalog, type Upstreams } from "./types.ts";

/** Accounts that are offered at once: those whose name or id begins with the text. */
const mostOffered = 20;

/** A filter by an account. The reader types the beginning of its name, and chooses it, or gives its id. */
export function AccountFilter({ value, onValue }: Filter) {
  const [text, setText] = useState(value);
  const [isAsked, setAsked] = useState(false);
  // A link may change the filter too.
  useEffect(() => setText(value), [value]);
  // The account that is chosen already is no beginning of others.
  const query = text === value ? undefined : text;
  const { data } = useApi<AdminList<Account>>(
    isAsked ? `${admin}/accounts${queryOf({ query, limit: mostOffered })}` : null,
  );
  return (
    <OfferedField
      label="Account"
      placeholder="name or acct_…"
      offers={data?.data}
      onFocus={() => setAsked(true)}
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
export function OfferedModels(filter: Filter) {
  const [isAsked, setAsked] = useState(false);
  const loaded = useApi<Catalog>(isAsked ? `${admin}/catalog` : null);
  return (
    <OfferedField
      label="Model"
      placeholder="all models"
      offers={loaded.data?.models}
      onFocus={() => setAsked(true)}
      {...filter}
    />
  );
}

/** A filter by an upstream. It takes upstreams that the catalog no longer has, too. */
export function OfferedUpstreams(filter: Filter) {
  const [isAsked, setAsked] = useState(false);
  const loaded = useApi<Upstreams>(isAsked ? `${admin}/upstreams` : null);
  return (
    <OfferedField
      label="Upstream"
      placeholder="all upstreams"
      offers={loaded.data?.data.map(({ name }) => ({ id: name }))}
      onFocus={() => setAsked(true)}
      {...filter}
    />
  );
}
