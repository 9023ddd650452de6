// Says which names stored keys of upstreams have. The catalog's schema, its service, the console and the command go by it.

/**
 * Short, and in small letters, so that hardly any key of an upstream is taken for a name by mistake: names are shown, and stand in the
 * audit log.
 */
export const storedKeyName = /^[a-z][a-z0-9._-]{0,31}$/;
/** The same for people. */
export const storedKeyNameText =
  "a small letter, then up to 31 small letters, digits, '.', '_' and '-'";
