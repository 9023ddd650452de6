import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProcess, type TestProcess, tempFolder } from "../host/process.ts";
import {
  type Authority,
  certificateFolder,
  mountSecret,
  noCertificates,
  type Pair,
} from "../support/certificates.ts";
import { freeMeshPorts } from "../support/free-port.ts";
import { ownStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { describeMesh } from "./servers.ts";

// `npm run mesh` like an operator runs it, with certificates on every port of the mesh.

/** Milliseconds. Seven processes and other work share the cores of a test machine. */
const startWithinMs = 150_000;
/** Makes each process print its id at its start, so that a test can kill it. */
const sayPid = `data:text/javascript,${encodeURIComponent('console.error("pid:"+process.pid)')}`;

describe.skipIf(noCertificates)(`with certificates${noCertificates ?? ""}`, async () => {
  await describeMesh("npm run mesh", () => {
    const stack = new AsyncDisposableStack();
    let runner: TestProcess;
    let authority: Authority;
    let pair: Pair;
    let strangers: Pair;
    let baseUrl: string;
    let key: string;

    beforeAll(async () => {
      const stores = await ownStores(stack, "mesh");
      if (!stores) throw new Error("there is no server for one of the stores");
      const certificates = stack.use(await certificateFolder());
      authority = await certificates.authority();
      pair = await authority.issue("127.0.0.1");
      strangers = await (await certificates.authority("theirs")).issue("127.0.0.1");
      const { files } = await mountSecret(certificates, { ...pair, ca: authority.ca });
      const data = stack.use(await tempFolder());
      const first = `${await freeMeshPorts()}`;
      const words = ["--replicas", "1", "--internal-port", first];
      runner = startProcess(process.execPath, ["services/host/run-mesh/main.ts", ...words], {
        env: {
          PORT: first,
          GENMESH_DATA_DIR: data.path,
          GENMESH_DRAIN_MS: "1000",
          GENMESH_TLS_CERT_FILE: files.certFile,
          GENMESH_TLS_KEY_FILE: files.keyFile,
          GENMESH_TLS_CA_FILE: files.caFile,
          GENMESH_TLS_CLIENT_AUTH: "1",
          NODE_OPTIONS: `--import ${sayPid}`,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
          ...stores.env,
        },
      });
      stack.defer(async () => {
        runner.kill("SIGTERM");
        expect(await runner.ended).toEqual({ code: 0, signal: null });
      });
      [, baseUrl = "", key = ""] = await runner.says(/^genmesh is ready: (\S+) {2}key: (\S+)\n/);
    }, startWithinMs);
    afterAll(() => stack.disposeAsync());

    /** The lines of the process with this name. */
    const saidBy = (name: string) =>
      runner
        .stderr()
        .split("\n")
        .map((line) => line.split(" | "))
        .filter(([of]) => of?.trim() === name)
        .map(([, said = ""]) => said);
    /** Sends a request with these TLS credentials. It trusts the mesh's authority. */
    const reach = async (url: string, shown: Partial<Pair>, more: object = {}) => {
      const { cert, key: secret } = shown;
      const agent = new Agent({
        connect: { ca: authority.ca, ...(cert && secret ? { cert, key: secret } : {}) },
      });
      try {
        const { statusCode, body } = await request(url, { dispatcher: agent, ...more });
        return { status: statusCode, text: await body.text() };
      } finally {
        await agent.destroy();
      }
    };
    /** A caller from outside has a key and no certificate. */
    const ask = (path: string, body?: object) =>
      reach(
        path.startsWith("https:") ? path : `${baseUrl}${path}`,
        {},
        {
          method: body ? "POST" : "GET",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          ...(body ? { body: JSON.stringify(body) } : {}),
        },
      );
    const stream = async () => {
      const { status, text } = await ask("/responses", {
        model: "chat-1",
        input: "Hi",
        stream: true,
      });
      return `${status} ${/event: (response\.\w+)\n[^\n]*\n\n(data: \[DONE\]\n\n)?$/.exec(text)?.[1]}`;
    };

    test("a text stream passes, and a job to its picture", async () => {
      expect(baseUrl).toMatch(/^https:/);
      expect(await stream()).toBe("200 response.completed");
      const submitted = await ask("/images/generations", { model: "image-1", prompt: "a boat" });
      expect(submitted.status).toBe(202);
      const { id } = JSON.parse(submitted.text);
      const job = await until(
        "the picture",
        async () => {
          const { text } = await ask(`/images/generations/${id}`);
          const found = JSON.parse(text);
          return found.status === "completed" ? found : undefined;
        },
        { withinMs: 60_000, everyMs: 200 },
      );
      const [{ url }] = job.images;
      expect(url).toMatch(/^https:/);
      expect(await ask(url)).toMatchObject({ status: 200, text: expect.stringContaining("PNG") });
    });

    test.each(["auth-1", "billing-1", "catalog-1", "text-1", "media-1"])(
      "%s hears no peer without a certificate of the authority",
      async (name) => {
        const line = saidBy(name).find((said) => said.includes(" is ready: ")) ?? "";
        const url = line.slice(line.indexOf("https:"));
        expect(await reach(url, pair)).toMatchObject({ status: 404 });
        await expect(reach(url, {})).rejects.toThrow();
        await expect(reach(url, strangers)).rejects.toThrow();
      },
    );

    test("a process that dies is started again, and serves", async () => {
      const pids = () => saidBy("text-1").flatMap((said) => /^pid:(\d+)$/.exec(said)?.[1] ?? []);
      const starts = () => saidBy("text-1").filter((said) => said.includes(" is ready: ")).length;
      expect([pids().length, starts()]).toEqual([1, 1]);
      process.kill(Number(pids()[0]), "SIGKILL");
      await until("its second start", () => starts() === 2, { withinMs: 60_000 });
      expect(saidBy("text-1")).toContain("ended with SIGKILL");
      expect(pids()[1]).not.toBe(pids()[0]);
      expect(await stream()).toBe("200 response.completed");
    });
  });
});
