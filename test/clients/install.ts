import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { clientPackages, n8n } from "./installed.ts";

// `npm run clients FOLDER` installs the clients of installed.ts there, about 1.5 GB. With `-- --n8n` it installs n8n below it, too, 2.2 GB.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { n8n: { type: "boolean", default: false } },
});
const [folder] = positionals;
if (folder === undefined) throw new Error("usage: npm run clients FOLDER [-- --n8n]");
const at = resolve(folder);
// The program of opencode comes by a script of its package.
const allowScripts = { "opencode-ai": true };
install(at, { dependencies: clientPackages, allowScripts });
if (values.n8n) {
  const own = join(at, "n8n");
  // Of the packages with machine code it needs one here, which is compiled. Others need libraries that a machine may lack.
  install(own, { dependencies: { n8n: n8n.version } }, "--ignore-scripts");
  npm(own, "rebuild", "sqlite3");
}
process.stdout.write(`export GENMESH_TEST_CLIENTS=${at}\n`);

function install(cwd: string, manifest: object, ...options: string[]): void {
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true, ...manifest }));
  npm(cwd, "install", "--no-audit", "--no-fund", ...options);
}

function npm(cwd: string, ...args: string[]): void {
  execFileSync("npm", args, { cwd, stdio: "inherit" });
}
