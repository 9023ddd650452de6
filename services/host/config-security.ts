// Reads the environment's variables for `/.well-known/security.txt`.

import { badVariable, type EnvReader } from "./env.ts";

/** The contents of `/.well-known/security.txt` (RFC 9116). */
export interface SecurityConfig {
  contacts: string[];
  expires: string;
}

/** Reads the settings. Undefined: the process has no such file. */
export function securityConfig(read: EnvReader): SecurityConfig | undefined {
  const contacts = read.list("GENMESH_SECURITY_CONTACT");
  const expires = read.text("GENMESH_SECURITY_EXPIRES");
  if (contacts.length === 0 && expires === undefined) return undefined;
  if (contacts.length === 0) {
    badVariable("GENMESH_SECURITY_CONTACT", "must be set beside GENMESH_SECURITY_EXPIRES");
  }
  for (const contact of contacts) {
    // The file is lines. The RFC asks for https where a contact is a page.
    if (/^(?:mailto:|https:\/\/|tel:)[\x21-\x7e]+$/.test(contact) && URL.canParse(contact))
      continue;
    badVariable(
      "GENMESH_SECURITY_CONTACT",
      "must be mailto:, https: or tel: URIs, separated by commas",
      contact,
    );
  }
  return { contacts, expires: timeOf(expires) };
}

function timeOf(expires: string | undefined): string {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
  if (expires !== undefined && form.test(expires) && !Number.isNaN(Date.parse(expires))) {
    return expires;
  }
  return badVariable(
    "GENMESH_SECURITY_EXPIRES",
    "must be a time beside GENMESH_SECURITY_CONTACT, e.g. 2027-06-30T00:00:00Z",
    expires,
  );
}
