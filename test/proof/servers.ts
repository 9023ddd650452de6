import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { portsFrom } from "../../services/host/run-mesh/ports.ts";
import { endTagged, runVariable } from "./processes.ts";

/** The real servers of one run. They have free ports and empty folders, and end with the run. */
export interface Servers {
  /** The variables by which tests find them. */
  env: Record<string, string>;
  end(): Promise<void>;
}

/** Seconds until a built program answers, and for building a program. */
const [startWithinSeconds, buildWithinSeconds] = [60, 1_500];

/** Below the ports of outgoing connections and beside those of tests, so that none of them is in the way. */
const firstPort = 28_000 + (process.pid % 1_000);

/** A folder in memory, and the free bytes that it must have to be used for a run's servers: six times the 0.65 GB that one run needed. */
const [memory, memoryBytes] = ["/dev/shm", 4 * 1024 ** 3];

/**
 * Starts NATS, an S3 store and a server of MongoDB's protocol by a script. The script gets its folder and its ports by variables, and
 * prints the variables for tests. Its built programs are kept in its usual folder and shared. Data and logs belong to this run.
 */
export async function startServers(script: string): Promise<Servers> {
  const cache = process.env.GENMESH_BACKENDS_DIR ?? join(homedir(), ".cache/genmesh-backends");
  mkdirSync(join(cache, "bin"), { recursive: true });
  await removeAbandoned(cache);
  const folder = mkdtempSync(join(cache, `run-${process.pid}-`));
  symlinkSync(join(cache, "bin"), join(folder, "bin"));
  const system = join(cache, "sid");
  const isBuilt = existsSync(join(system, ".ready")) && existsSync(join(cache, "bin/ferretdb"));
  const inMemory = memoryFolder();
  if (inMemory) symlinkSync(mkdtempSync(join(inMemory, "run-")), join(folder, "run"));
  if (existsSync(join(system, ".ready"))) {
    // Hard links. A database's programs are only read, and its data are new.
    execFileSync("cp", ["--archive", "--link", system, join(folder, "sid")]);
    rmSync(join(folder, "sid", data), { recursive: true, force: true });
    if (inMemory) symlinkSync(mkdtempSync(join(inMemory, "database-")), join(folder, "sid", data));
  }
  const tag = tagOf(process.pid);
  const freePort = portsFrom("127.0.0.1", firstPort);
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    [runVariable]: tag,
    GENMESH_BACKENDS_DIR: folder,
    NATS_PORT: String(await freePort()),
    MONGO_PORT: String(await freePort()),
    PG_PORT: String(await freePort()),
    S3_PORT: String(await freePort()),
  };
  const end = async () => {
    await endTagged(tag);
    rmSync(join(folder, "sid", data), { recursive: true, force: true });
    if (!existsSync(system) && existsSync(join(folder, "sid/.ready"))) {
      renameSync(join(folder, "sid"), system);
    }
    rmSync(folder, { recursive: true, force: true });
    if (inMemory) rmSync(inMemory, { recursive: true, force: true });
  };
  try {
    const output = await run(script, env, isBuilt ? startWithinSeconds : buildWithinSeconds);
    return { env: exportsOf(output), end };
  } catch (error) {
    const said = `${(error as Error).message}\n${lastLogLines(join(folder, "log"))}`;
    await end();
    throw new Error(said);
  }
}

/** The database's folder, below the script's folder for it. */
const data = "var/lib/genmesh";

/**
 * A folder of this run in memory, where there is room. A disk that is writing older data can take seconds for one write, and a test of the
 * product would fail for that. Undefined: data are on the disk.
 */
function memoryFolder(): string | undefined {
  if (!existsSync(memory)) return undefined;
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize < memoryBytes) return undefined;
  const folder = mkdtempSync(join(memory, `genmesh-servers-${process.pid}-`));
  // The database has a user of its own.
  chmodSync(folder, 0o711);
  return folder;
}

/** Ends the servers of killed runs, and removes their folders. */
async function removeAbandoned(cache: string): Promise<void> {
  const inMemory = existsSync(memory) ? readdirSync(memory).map((name) => join(memory, name)) : [];
  for (const path of [...readdirSync(cache).map((name) => join(cache, name)), ...inMemory]) {
    const owner = /^(?:run|genmesh-servers)-(\d+)-/.exec(basename(path))?.[1];
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    await endTagged(tagOf(owner));
    rmSync(path, { recursive: true, force: true });
  }
}

const tagOf = (owner: number | string) => `servers-${owner}`;

/** The script's output. Its errors go to this process's standard error. */
function run(script: string, env: NodeJS.ProcessEnv, limitSeconds: number): Promise<string> {
  const child = spawn(script, ["up"], { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let output = "";
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    process.stderr.write(text);
  });
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      reject(new Error(`the servers did not start within ${limitSeconds} s\n${said}`));
    }, limitSeconds * 1000);
    child.once("error", reject);
    // Not "close", because the servers keep their inherited output open.
    child.once("exit", (code) => {
      clearTimeout(limit);
      if (code === 0) resolve(output);
      else reject(new Error(`the servers did not start: ended with ${code}\n${said}`));
    });
  });
}

/** The variables in lines such as `export NAME='value'`. */
export function exportsOf(output: string): Record<string, string> {
  const lines = [...output.matchAll(/^export (\w+)=(?:'([^']*)'|(.*))$/gm)];
  return Object.fromEntries(lines.map(([, name, quoted, plain]) => [name, quoted ?? plain ?? ""]));
}

function lastLogLines(folder: string): string {
  if (!existsSync(folder)) return "";
  const logs = readdirSync(folder).map((name) => {
    const lines = readFileSync(join(folder, name), "utf8").trimEnd().split("\n");
    return `${name}:\n${lines.slice(-8).join("\n")}`;
  });
  return logs.join("\n");
}
