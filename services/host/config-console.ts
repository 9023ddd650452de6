// Reads the environment's variables for the console and its sign-in by an identity provider.

import { badVariable, type EnvReader } from "./env.ts";
import { readSecretFile } from "./read-secret-file.ts";

/** A process's settings of the console. */
export interface ConsoleConfig {
  /** Sign-in at an identity provider. Undefined: with a secret alone. */
  oidc: OidcConfig | undefined;
}

/** An identity provider, and the meaning of its claims here. */
export interface OidcConfig {
  issuer: string;
  clientId: string;
  /** Read when the process starts. */
  clientSecretFile: string;
  accountClaim: string;
  roleClaim: string;
}

/** Reads the settings. Undefined: the console is off. */
export function consoleConfig(read: EnvReader): ConsoleConfig | undefined {
  const state = read.choice("GENMESH_CONSOLE", ["on", "off"], "on");
  return state === "off" ? undefined : { oidc: oidcConfig(read) };
}

function oidcConfig(read: EnvReader): OidcConfig | undefined {
  const issuer = read.text("GENMESH_OIDC_ISSUER");
  if (issuer === undefined) return undefined;
  const needed = (name: string) =>
    read.text(name) ?? badVariable(name, "must be set beside GENMESH_OIDC_ISSUER");
  return {
    issuer: issuerUrl(issuer),
    clientId: needed("GENMESH_OIDC_CLIENT_ID"),
    clientSecretFile: needed("GENMESH_OIDC_CLIENT_SECRET_FILE"),
    accountClaim: read.text("GENMESH_OIDC_ACCOUNT_CLAIM") ?? "genmesh_account",
    roleClaim: read.text("GENMESH_OIDC_ROLE_CLAIM") ?? "genmesh_role",
  };
}

/** Plain HTTP is only for a provider on this machine. Otherwise any program on the way could sign in as any person. */
function issuerUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isLocal = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/|$)/.test(value);
  const isPlain = url && !url.search && !url.hash && !url.username;
  if (isPlain && (url.protocol === "https:" || isLocal)) return value;
  return badVariable(
    "GENMESH_OIDC_ISSUER",
    "must be an https URL without query, as the provider names itself, e.g. https://id.example.com",
    value,
  );
}

/** The client's secret. Throws ConfigError where the file has none. */
export function readClientSecret(file: string): string {
  return readSecretFile("GENMESH_OIDC_CLIENT_SECRET_FILE", file);
}
