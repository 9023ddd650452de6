import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { root } from "./process.ts";

/** The name in the blocks of `docs/running.md`. */
export const publicName = "genmesh.example.com";

/** The two sides of a proxy, and a folder of its own. */
interface Between {
  /** HOST:PORT of genmesh's public port. */
  target: string;
  /** Files with a certificate of {@link publicName} and its key. */
  certFile: string;
  keyFile: string;
  folder: string;
}

/** A proxy that serves {@link publicName} over TLS on a port of the loopback. */
export interface RunningProxy extends AsyncDisposable {
  port: number;
}

/** The block of code of a language in `docs/running.md`. */
async function blockOf(language: string): Promise<string> {
  const page = await readFile(join(root, "docs/running.md"), "utf8");
  const [, block] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "ms").exec(page) ?? [];
  if (block === undefined) throw new Error(`docs/running.md has no block of ${language}`);
  return block;
}

/** Puts a test's value in the place of the page's, which must be there. */
function replaced(block: string, pairs: readonly (readonly [string | RegExp, string])[]): string {
  return pairs.reduce((text, [of, by]) => {
    const after = text.replace(of, by);
    if (after === text) throw new Error(`the block of docs/running.md has no ${of}`);
    return after;
  }, block);
}

/** The address of genmesh's public port in the page. */
const targetOfPage = /127\.0\.0\.1:\d+/;

/** A proxy of the page, and how it is started with the page's block. */
interface Proxy {
  program: string;
  /** Does this machine have it? */
  isThere: boolean;
  start(between: Between): Promise<RunningProxy>;
}

const hasProgram = (program: string, arg: string) => spawnSync(program, [arg]).error === undefined;

export const nginx: Proxy = {
  program: "nginx",
  isThere: hasProgram("nginx", "-v"),
  async start({ target, certFile, keyFile, folder }) {
    const port = await freePort();
    const block = replaced(await blockOf("nginx"), [
      ["listen 443 ssl", `listen ${port} ssl`],
      [targetOfPage, target],
      [`/etc/letsencrypt/live/${publicName}/fullchain.pem`, certFile],
      [`/etc/letsencrypt/live/${publicName}/privkey.pem`, keyFile],
    ]);
    const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    const temp = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join("\n");
    // Its workers are this user, as the folder is.
    const user = process.getuid?.() === 0 ? "user root;" : "";
    const config = join(folder, "nginx.conf");
    await writeFile(
      config,
      `daemon off; ${user} pid ${join(folder, "pid")}; error_log stderr;
events {}
http { access_log off; ${temp}
${block} }`,
    );
    return run("nginx", ["-p", folder, "-e", "stderr", "-c", config], port, folder);
  },
};

export const caddy: Proxy = {
  program: "caddy",
  isThere: hasProgram("caddy", "version"),
  async start({ target, certFile, keyFile, folder }) {
    const port = await freePort();
    const block = replaced(await blockOf("caddy"), [
      // In place of a certificate that it gets by itself.
      [`${publicName} {`, `${publicName}:${port} {\n\ttls ${certFile} ${keyFile}`],
      [targetOfPage, target],
    ]);
    const config = join(folder, "Caddyfile");
    await writeFile(config, `{\n\tadmin off\n\tauto_https off\n}\n${block}`);
    return run("caddy", ["run", "--config", config, "--adapter", "caddyfile"], port, folder);
  },
};

async function run(
  program: string,
  args: readonly string[],
  port: number,
  folder: string,
): Promise<RunningProxy> {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  const ended = once(child, "exit");
  await until(`${program} to listen`, () => {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
    return isListening(port);
  });
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function isListening(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1", () => resolve(true));
  socket.on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}
