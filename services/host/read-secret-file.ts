// Reads a secret of the configuration from the file that a variable names.

import { readFileSync } from "node:fs";
import { badVariable } from "./env.ts";

/** The secret in the file that a variable names. Throws ConfigError where the file has none. */
export function readSecretFile(variable: string, file: string): string {
  let secret: string;
  try {
    secret = readFileSync(file, "utf8").trim();
  } catch {
    return badVariable(variable, "must be a file that can be read", file);
  }
  return secret === ""
    ? badVariable(variable, "must be a file that holds the secret", file)
    : secret;
}
