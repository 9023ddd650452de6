// Says which names stored keys of upstreams have. The catalog's schema, its service, the console and the command go by it.

/**
 * A name is short and has small letters. Few keys of upstreams are so, and hence few are stored as a name by mistake. Names are shown,
 * and the audit log has them.
 */
export const storedKeyName = /^[a-z][a-z0-9._-]{0,31}$/;
/** Characters of a stored key. Servers take no longer header by default than twice of it. */
export const maxStoredKeyChars = 4_096;
/** The form of a name for people. */
export const storedKeyNameText =
  "a small letter, then up to 31 small letters, digits, '.', '_' and '-'";
