import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Clients that are programs of their own, or large. `npm run clients FOLDER` installs them, and this variable then names the folder. Without
 * it their tests are skipped.
 */
const { GENMESH_TEST_CLIENTS: folder = "" } = process.env;

/** Where a client's packages are: those of the project where no folder is named. */
const modules =
  folder === ""
    ? fileURLToPath(new URL("../../node_modules", import.meta.url))
    : join(folder, "node_modules");

/** Packages and their versions, as the tests were written for them. */
export const clientPackages: Readonly<Record<string, string>> = {
  "@ai-sdk/openai-compatible": "3.0.92",
  "@anthropic-ai/claude-agent-sdk": "0.3.332",
  "@anthropic-ai/sdk": "1.14.0",
  "@langchain/core": "1.4.0",
  "@langchain/openai": "1.6.0",
  "@openai/agents": "0.20.0",
  "@openai/codex": "0.171.0",
  ai: "7.0.173",
  openai: "7.59.0",
  "opencode-ai": "1.18.33",
  ws: "8.23.0",
  zod: "4.6.7",
};

/**
 * n8n has an install of its own, in the folder's `n8n`: 2.2 GB, with other versions of the packages above. `npm run clients FOLDER -- --n8n`
 * brings it.
 */
export const n8n = { version: "2.41.1", folder: join(folder, "n8n") };

/** Why the test of a package cannot run. Undefined: it can. */
export async function missing(name: string): Promise<string | undefined> {
  const isThere = await readFile(join(modules, name, "package.json")).then(
    () => true,
    () => false,
  );
  if (isThere) return undefined;
  const why = `needs ${name} (npm run clients FOLDER, and GENMESH_TEST_CLIENTS=FOLDER)`;
  process.stderr.write(`skipped: ${why}\n`);
  return why;
}

/** A new home of a program: its files are in `path`, and nothing else of this machine is there. */
export interface Home extends AsyncDisposable {
  path: string;
  /** Runs a command of a shell there. Rejects where it fails. The clients of the folder are on its path. */
  run(command: string, env?: Record<string, string>): Promise<string>;
}

/** Makes a home. Commands that still run at its end are killed. */
export async function makeHome(): Promise<Home> {
  const path = await mkdtemp(join(tmpdir(), "genmesh-client-"));
  const bin = join(path, "bin");
  await mkdir(bin);
  // The program of Claude Code is within the package of the Agent SDK, and has no name there.
  const claude = `@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}/claude`;
  await symlink(join(modules, claude), join(bin, "claude"));
  await symlink(modules, join(path, "node_modules"));
  const stopped = new AbortController();
  return {
    path,
    run: (command, env = {}) =>
      new Promise((resolve, reject) => {
        const child = spawn("sh", ["-c", command], {
          cwd: path,
          env: {
            PATH: [bin, join(modules, ".bin"), process.env.PATH].join(delimiter),
            HOME: path,
            ...env,
          },
          stdio: ["ignore", "pipe", "pipe"],
          signal: stopped.signal,
          killSignal: "SIGKILL",
        });
        let said = "";
        let complaint = "";
        child.stdout.on("data", (data) => (said += data));
        child.stderr.on("data", (data) => (complaint += data));
        child.on("error", reject);
        child.on("close", (code) =>
          code === 0 ? resolve(said) : reject(new Error(`${code}: ${said}${complaint}`)),
        );
      }),
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await rm(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
