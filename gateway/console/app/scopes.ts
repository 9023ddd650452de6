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
