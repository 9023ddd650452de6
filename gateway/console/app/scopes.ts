// Lists the scopes of keys with their words, for the forms and lists of keys.

/** The scopes of a key that names none. */
export const implied = [
  "text",
  "images",
  "videos",
  "music",
  "speech",
  "files",
  "models",
  "billing",
];

/** Scopes that are never implied. They allow management, signing for the account, or a look at other keys' data. */
export const managing = ["keys", "webhooks", "usage:read-all", "jobs:read-all"];

/** Seconds for which the previous secret stays valid after a rotation. */
export const graces = [
  { value: "0", label: "At once, because it leaked" },
  { value: "3600", label: "After one hour" },
  { value: "86400", label: "After one day" },
  { value: "604800", label: "After one week" },
];

/** One word where the key has all implied scopes, because that list is long. */
export function rightsOf(scopes: readonly string[]): string {
  const isAll = implied.every((scope) => scopes.includes(scope));
  if (!isAll) return scopes.join(", ");
  const also = scopes.filter((scope) => !implied.includes(scope));
  return also.length === 0 ? "everything but managing" : `everything, also ${also.join(", ")}`;
}
