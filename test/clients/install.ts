import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { clientPackages } from "./installed.ts";

// `npm run clients FOLDER` installs the clients of installed.ts there, about 1.5 GB.

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: npm run clients FOLDER");
const at = resolve(folder);
mkdirSync(at, { recursive: true });
// The program of opencode comes by a script of its package.
const allowScripts = { "opencode-ai": true };
const manifest = { private: true, dependencies: clientPackages, allowScripts };
writeFileSync(`${at}/package.json`, JSON.stringify(manifest));
execFileSync("npm", ["install", "--no-audit", "--no-fund"], { cwd: at, stdio: "inherit" });
process.stdout.write(`export GENMESH_TEST_CLIENTS=${at}\n`);
