/** Scopes that a key without any has. */
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

/** Scopes that are never implied: what manages, signs for the account, or shows more than the key's own. */
export const managing = ["keys", "webhooks", "usage:read-all", "jobs:read-all"];

/** How long the secret before a rotation goes on working, in seconds. */
export const graces = [
  { value: "0", label: "At once, because it leaked" },
  { value: "3600", label: "After one hour" },
  { value: "86400", label: "After one day" },
  { value: "604800", label: "After one week" },
];

/** In a word where it may do all that is implied, for that list is long. */
export function rightsOf(scopes: readonly string[]): string {
  const isAll = implied.every((scope) => scopes.includes(scope));
  if (!isAll) return scopes.join(", ");
  const also = scopes.filter((scope) => !implied.includes(scope));
  return also.length === 0 ? "everything but managing" : `everything, also ${also.join(", ")}`;
}
