// Makes the first account, once. The chart's Job has a key in its environment and does not print it. Compose's Job keeps a key in a file
// and prints it.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { ownerScopes, scopeName } from "#common/words/scopes.ts";
import { readEnv } from "../../services/host/config.ts";
import { operate } from "./operator.ts";
import { runJob } from "./run-job.ts";

/** Random bytes of a key: 256 bits. */
const keyBytes = 32;

await runJob(async () => {
  const { values } = parseArgs({
    options: {
      name: { type: "string", default: "demo" },
      usd: { type: "string" },
      "usd-micros": { type: "string" },
      credits: { type: "string", default: "0" },
      "operation-id": { type: "string", default: "bootstrap" },
      // The file of the key, which is made where there is none, and the URL for using it.
      "key-file": { type: "string" },
      url: { type: "string", default: "" },
      server: { type: "string" },
    },
  });
  const { "key-file": keyFile, url, server, ...account } = values;
  const key = keyFile ? keptKey(keyFile) : readEnv().GENMESH_BOOTSTRAP_API_KEY;
  if (!key) throw new Error("GENMESH_BOOTSTRAP_API_KEY must be set");
  const words = Object.entries(account).flatMap(([name, value]) => [`--${name}`, value]);
  const scopes = ownerScopes.flatMap((one) => ["--scope", scopeName(one)]);
  const made = await operate(["account", "create", ...words, ...scopes, "--api-key", key], server);
  if (keyFile) return `genmesh is ready: ${url}  key: ${key}`;
  return `account ${made.accountId} ${made.replayed ? "was there" : "made"}`;
});

// Written before the account is made, so that a crash between the two does not lose it.
function keptKey(file: string): string {
  if (!existsSync(file)) {
    writeFileSync(file, `gm_${randomBytes(keyBytes).toString("base64url")}\n`, { mode: 0o600 });
  }
  return readFileSync(file, "utf8").trim();
}
