// Makes the first account, once: the chart's Job with a key from the environment, which it does not print, and compose's
// with a key that it keeps in a file and prints.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { ownerScopes, scopeName } from "#common/words/scopes.ts";
import { readEnv } from "../../services/host/config.ts";
import { operate } from "./operator.ts";
import { runJob } from "./run-job.ts";

/** Bytes of chance in a key: 256 bits. */
const keyBytes = 32;

await runJob(async () => {
  const { values } = parseArgs({
    options: {
      name: { type: "string", default: "demo" },
      usd: { type: "string" },
      "usd-micros": { type: "string" },
      credits: { type: "string", default: "0" },
      "operation-id": { type: "string", default: "bootstrap" },
      // Where the key is kept, and made where there is none; with the URL under which it may be used.
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

// Written before the account is made, so that no crash between loses it.
function keptKey(file: string): string {
  if (!existsSync(file)) {
    writeFileSync(file, `gm_${randomBytes(keyBytes).toString("base64url")}\n`, { mode: 0o600 });
  }
  return readFileSync(file, "utf8").trim();
}
