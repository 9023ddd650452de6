import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundleOf, programs } from "../../deploy/build.ts";
import manifest from "../../package.json" with { type: "json" };
import { certificateFolder, noCertificates } from "../support/certificates.ts";
import { until } from "../support/until.ts";

/** The name of an image that is built already. `npm run test:cluster` builds one and names it. */
const image = process.env.GENMESH_TEST_IMAGE;
/** Milliseconds from a container's start to its health on a busy machine. */
const startMs = 120_000;
/** As `deploy/compose.yaml` and the chart run it: the rest of the file system is read-only, and no right is left. */
const bounds = [
  ...["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"],
  ...["--tmpfs", "/tmp", "--tmpfs", "/var/lib/genmesh:uid=65532,gid=65532,mode=0700"],
];
/** Programs of a usual base that genmesh does not call. */
const unwanted =
  "npm npx yarn yarnpkg corepack apt apt-get dpkg sh bash dash busybox env su mount perl python3 curl wget".split(
    " ",
  );

const without = image === undefined ? " (skipped: GENMESH_TEST_IMAGE names none)" : "";

describe.skipIf(image === undefined)(`the image${without}`, () => {
  let container: string;
  let origin: string;

  beforeAll(async () => {
    const publish = ["--publish", "127.0.0.1::8080", "--health-interval", "1s"];
    container = await docker("run", "--detach", ...bounds, ...publish, image ?? "");
    await until("health", isHealthy, { withinMs: startMs, everyMs: 250 });
    origin = `http://${await docker("port", container, "8080")}`;
  }, startMs);
  afterAll(() => docker("rm", "--force", "--volumes", container));

  /** Fails where the health check did, or where the process has ended. */
  async function isHealthy(): Promise<boolean> {
    const state = JSON.parse(await docker("inspect", "--format", "{{json .State}}", container));
    expect(state).toMatchObject({ Status: "running" });
    expect(state.Health.Status).not.toBe("unhealthy");
    return state.Health.Status === "healthy";
  }

  /** Standard output of a program in the container. */
  const inside = (...words: string[]) => docker("exec", container, ...words);
  /** The value of an expression of Node in the container. */
  const value = async (expression: string, ...options: string[]) =>
    JSON.parse(
      await docker(
        ...["exec", ...options, container, "node", "-e"],
        `Promise.resolve(${expression}).then((all) => console.log(JSON.stringify(all)))`,
      ),
    );

  test("runs the operator command", async () => {
    expect(await inside("genmesh", "--version")).toBe(manifest.version);
    expect(await inside("genmesh", "status")).toMatch(/all is well$/);
    expect(await inside("genmesh", "ledger", "audit")).toContain("the books agree");
  });

  test("makes an image with the built-in model", async () => {
    const said = await docker("logs", container);
    const [, key] = /^genmesh is ready: .* key: (\S+)$/m.exec(said) ?? [];
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "image-1", prompt: "a fox, 狐, 🦊" });
    const made = await fetch(`${origin}/v1/images/generations`, { method: "POST", headers, body });
    expect(made.status).toBe(202);
    const { statusUrl } = (await made.json()) as { statusUrl: string };
    const ended = await until("the end of the job", async () => {
      const job = await (await fetch(statusUrl, { headers })).json();
      return (job as { terminal: boolean }).terminal && job;
    });
    expect(ended).toMatchObject({ status: "completed", images: [{ mimeType: "image/png" }] });
    const { images } = ended as { images: { url: string; sizeBytes: number }[] };
    for (const { url, sizeBytes } of images) {
      const file = await fetch(url, { headers });
      expect((await file.arrayBuffer()).byteLength).toBe(sizeBytes);
    }
  });

  test("has the console with all its packages", async () => {
    expect(await (await fetch(`${origin}/console/`)).text()).toContain("/console/assets/");
    const assets = "/app/dist/gateway/console/app/assets";
    const [all, lacking] = await value(
      `[/./, /\\b(?:from|import\\(?)"[^./]/].map((pattern) => fs.globSync("${assets}/*.js").filter((file) => pattern.test(fs.readFileSync(file, "utf8"))))`,
    );
    expect(all.length).toBeGreaterThan(10);
    expect(lacking).toEqual([]);
  });

  test("has no shell, no npm and no package manager", async () => {
    const found = await value(
      `["/usr", "/app", "/opt", "/etc"].filter((folder) => fs.existsSync(folder)).flatMap((folder) =>
        fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => !one.isDirectory()).map((one) => one.name))`,
      ...["--user", "0"],
    );
    expect(found).toContain("node");
    expect(unwanted.filter((name) => found.includes(name))).toEqual([]);
    // Docker's own words for a program that is not there.
    const refused = { stdout: expect.stringContaining("executable file not found") };
    await expect(inside("sh", "-c", "true")).rejects.toMatchObject(refused);
  });

  test("runs as 65532, and its own files are not its to change", async () => {
    expect(await value("[process.getuid(), process.getgid()]")).toEqual([65_532, 65_532]);
    const writable = await docker(
      ...["run", "--rm", "--entrypoint", "node", image ?? "", "-p"],
      `["/app", "/app/dist", "/app/bin/genmesh", "/app/.compile-cache", "/usr/local/bin/node", "/etc/passwd"]
        .filter((path) => { try { fs.accessSync(path, fs.constants.W_OK); return true; } catch { return false; } }).join()`,
    );
    expect(writable).toBe("");
    expect(await value("(fs.statSync(process.env.GENMESH_DATA_DIR).mode & 0o777)")).toBe(0o700);
  });

  test("starts with code that was compiled when it was built", async () => {
    const status = 'require("module").getCompileCacheDir()';
    expect(await value(status)).toMatch(/^\/app\/\.compile-cache\/v24.*-65532$/);
  });

  test("knows the public authorities of TLS, and the time zones", async () => {
    expect(await value('require("tls").getCACertificates("system").length')).toBeGreaterThan(100);
    expect(await value('fs.existsSync("/usr/share/zoneinfo/Europe/Berlin")')).toBe(true);
    const hour = 'new Date(0).toLocaleString("en-GB", { timeStyle: "short" })';
    expect(await value(hour, "--env", "TZ=Asia/Tokyo")).toBe("09:00");
  });

  test.skipIf(noCertificates)("trusts an authority of NODE_EXTRA_CA_CERTS", async () => {
    await using folder = await certificateFolder();
    const authority = await folder.authority();
    const { cert, key } = await authority.issue("localhost");
    const files = { CA: authority.ca, CERT: cert, KEY: key };
    const options = Object.entries(files).flatMap(([name, pem]) => ["--env", `${name}=${pem}`]);
    // A server, and two clients in processes of their own: with the authority and without it.
    const answers = await value(
      `new Promise((resolve) => {
        const { CA, CERT: cert, KEY: key } = process.env;
        const file = path.join(os.tmpdir(), "ca.crt");
        fs.writeFileSync(file, CA);
        const server = https.createServer({ cert, key }, (_, answer) => answer.end("served"));
        const ask = (env) => new Promise((answered) => child_process.execFile(process.execPath, ["-e",
          "fetch('https://localhost:" + server.address().port + "').then((one) => one.text()).then(console.log, (error) => console.log(error.cause.code))"],
          { env }, (_, output) => answered(output.trim())));
        server.listen(0, async () => {
          resolve([await ask({ NODE_EXTRA_CA_CERTS: file }), await ask({})]);
          server.close();
        });
      })`,
      ...options,
    );
    expect(answers).toEqual(["served", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"]);
  });

  // None of them knows this word, and each reports that itself. With a missing module it could not.
  test.each(programs.filter((one) => !one.includes("host/main")))("has %s", async (program) => {
    const ended = inside(
      "node",
      "--disable-warning=ExperimentalWarning",
      bundleOf(program),
      "--no-such-word",
    );
    await expect(ended).rejects.toMatchObject({
      stderr: expect.stringContaining("--no-such-word"),
    });
  });
});

/** Runs Docker's command. Gives its standard output. Rejects with its error output where it fails. */
async function docker(...words: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("docker", words, { maxBuffer: 16 << 20 });
  return stdout.trim();
}
