import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { createPeers } from "#common/agreements/peers.ts";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { type RoleProcess, startRole } from "../../services/host/role.ts";
import { certificateFolder, mountSecret, noCertificates } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import { describeMongo } from "../support/mongo.ts";
import { openTcpWire } from "../support/tcp-wire.ts";
import { until } from "../support/until.ts";
import { runHost, type Variables } from "./process.ts";

const [meshToken, adminToken] = ["mesh-token-of-the-tests", "admin-token-of-the-tests"];
const never = new AbortController().signal;
const started: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of started.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

/** Starts a role in this process, on free ports of the loopback. */
async function start(env: Variables, signal = never): Promise<RoleProcess> {
  const config = envToConfig({
    HOST: "127.0.0.1",
    PORT: "0",
    GRPC_PORT: "0",
    GENMESH_OPS_PORT: "0",
    GENMESH_MESH_TOKEN: meshToken,
    GENMESH_ADMIN_TOKEN: adminToken,
    ...env,
  });
  const role = await startRole(config, { log: createLogger("silent"), signal });
  started.push(role);
  return role;
}

/** Clients of one address, with or without a token. */
function peersAt(baseUrl: string, token?: string, isGrpc = false) {
  const interceptors = token
    ? [
        (next: (request: never) => never) => (request: { header: Headers }) => {
          request.header.set("authorization", `Bearer ${token}`);
          return next(request as never);
        },
      ]
    : [];
  const options = { baseUrl, interceptors: interceptors as never };
  return createPeers(() =>
    isGrpc
      ? createGrpcTransport(options)
      : createConnectTransport({ ...options, httpVersion: "1.1" }),
  );
}

const textOf = async (url: string) => {
  const answer = await fetch(url);
  return `${answer.status} ${(await answer.text()).split("\n")[0]}`;
};

describe("a role that needs no store", () => {
  test("answers internal callers on both ports, and probes without a token", async () => {
    const role = await start({ GENMESH_ROLE: "catalog" });
    expect(await textOf(`${role.url}/healthz`)).toBe("200 ok");
    expect(await textOf(`${role.url}/readyz`)).toBe("200 ready");
    expect((await fetch(`${role.url}/metrics`)).status).toBe(404);
    expect(await textOf(`${role.opsUrl}/healthz`)).toBe("200 ok");
    expect(await textOf(`${role.opsUrl}/readyz`)).toBe("200 ready");
    expect(await textOf(`${role.opsUrl}/metrics`)).toMatch(/^200 # /);
    expect((await fetch(`${role.url}/v1/models`)).status).toBe(404);
    const both = [
      { url: role.url, isGrpc: false },
      { url: `http://${role.grpcAddress}`, isGrpc: true },
    ];
    for (const { url, isGrpc } of both) {
      const { snapshot } = await peersAt(url, meshToken, isGrpc).catalog.getSnapshot({});
      expect(snapshot?.models.length).toBeGreaterThan(5);
      await expect(peersAt(url, undefined, isGrpc).catalog.getSnapshot({})).rejects.toThrow();
      await expect(peersAt(url, meshToken, isGrpc).billing.getBalance({})).rejects.toThrow();
    }
  });

  test("a drain ends the watches, serves what still arrives, and closes the port", async () => {
    const role = await start({ GENMESH_ROLE: "catalog" });
    const { catalog } = peersAt(role.url, meshToken);
    const watch = catalog.watchSnapshots({})[Symbol.asyncIterator]();
    await watch.next();
    const drained = role.drain(never);
    for (let message = await watch.next(); !message.done; message = await watch.next());
    await drained;
    await expect(catalog.getSnapshot({})).rejects.toThrow();
  });
});

describe.skipIf(noCertificates)(`with certificates ${noCertificates ?? ""}`, () => {
  test("both ports speak TLS and ask for a certificate; the operations port is plain", async () => {
    await using folder = await certificateFolder();
    const authority = await folder.authority();
    const pair = await authority.issue("127.0.0.1");
    const { files } = await mountSecret(folder, { ...pair, ca: authority.ca });
    const role = await start({
      GENMESH_ROLE: "catalog",
      GENMESH_TLS_CERT_FILE: files.certFile,
      GENMESH_TLS_KEY_FILE: files.keyFile,
      GENMESH_TLS_CA_FILE: files.caFile,
      GENMESH_TLS_CLIENT_AUTH: "1",
    });
    expect(role.url).toMatch(/^https:/);
    expect(await textOf(`${role.opsUrl}/readyz`)).toBe("200 ready");
    const interceptors = [
      (next: (request: never) => never) => (request: { header: Headers }) => {
        request.header.set("authorization", `Bearer ${meshToken}`);
        return next(request as never);
      },
    ] as never;
    const call = (url: string, nodeOptions: object, isGrpc: boolean) =>
      createPeers(() =>
        isGrpc
          ? createGrpcTransport({ baseUrl: url, interceptors, nodeOptions })
          : createConnectTransport({ baseUrl: url, interceptors, nodeOptions, httpVersion: "1.1" }),
      ).catalog.getSnapshot({});
    const whole = { ca: authority.ca, cert: pair.cert, key: pair.key };
    const urls = [
      { url: role.url, isGrpc: false },
      { url: `https://${role.grpcAddress}`, isGrpc: true },
    ];
    for (const { url, isGrpc } of urls) {
      expect((await call(url, whole, isGrpc)).snapshot).toBeDefined();
      await expect(call(url, { ca: authority.ca }, isGrpc)).rejects.toThrow();
    }
  });

  test("a file that cannot be used ends the start with its variable", async () => {
    const fault = await start({
      GENMESH_ROLE: "catalog",
      GENMESH_TLS_CERT_FILE: "/nowhere/tls.crt",
      GENMESH_TLS_KEY_FILE: "/nowhere/tls.key",
    }).catch((error: Error) => error);
    expect(fault).toMatchObject({
      name: "ConfigError",
      message: expect.stringMatching(/^GENMESH_TLS_(CERT|KEY)_FILE: .*cannot be read/),
    });
  });
});

await describeMongo("a role on MongoDB", (mongo) => {
  const urlOf = (name: string, host?: string) => {
    const url = new URL(mongo.url);
    url.pathname = `/${name}`;
    if (host) url.host = host;
    return url.href;
  };

  test("two replicas that start at once share accounts", async () => {
    const env = { GENMESH_ROLE: "auth", GENMESH_DATABASE_URL: urlOf(mongo.newName()) };
    const [one, other] = await Promise.all([start(env), start(env)]);
    const { account } = await peersAt(one.url, adminToken).auth.createAccount({ name: "n" });
    const accountId = account?.accountId ?? "";
    const { auth } = peersAt(other.url, adminToken);
    expect((await auth.getAccount({ accountId })).account).toMatchObject({ accountId, name: "n" });
    await expect(peersAt(one.url, meshToken).auth.createAccount({ name: "n" })).rejects.toThrow();
  });

  test("it waits for a server that is away: alive, not ready, and ready once there is one", async () => {
    await using wire = await openTcpWire(new URL(mongo.url).host);
    wire.cut();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const starting = start({
      GENMESH_ROLE: "auth",
      PORT: `${port}`,
      GENMESH_DATABASE_URL: urlOf(mongo.newName(), wire.address),
    });
    await until("the port", () => textOf(`${url}/healthz`).catch(() => undefined));
    expect(await textOf(`${url}/readyz`)).toBe("503 starting");
    wire.mend();
    await starting;
    expect(await textOf(`${url}/readyz`)).toBe("200 ready");
  });

  test("it stops while it waits", async () => {
    await using wire = await openTcpWire(new URL(mongo.url).host);
    wire.cut();
    const stop = new AbortController();
    const starting = start(
      { GENMESH_ROLE: "auth", GENMESH_DATABASE_URL: urlOf(mongo.newName(), wire.address) },
      stop.signal,
    );
    stop.abort(new Error("enough"));
    await expect(starting).rejects.toThrow();
  });

  test("a database of a newer build: exit 1 and one sentence", async () => {
    const name = mongo.newName();
    const versions = mongo.raw(name).collection<{ _id: string; version: number }>("schema_version");
    await versions.insertOne({ _id: "auth", version: 99 });
    const { code, stdout, stderr } = await runHost({
      GENMESH_ROLE: "auth",
      GENMESH_MESH_TOKEN: meshToken,
      GENMESH_DATABASE_URL: urlOf(name),
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(
      /^genmesh: GENMESH_DATABASE_URL: the collections of auth were made by a newer genmesh \(version 99, known: \d+\)\n$/,
    );
  });
});

test("a role that misses a variable: exit 1 and one line that names it", async () => {
  const { code, stderr } = await runHost({ GENMESH_MESH_TOKEN: meshToken }, ["--role", "text"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^genmesh: GENMESH_BILLING_URL must be set for role text: .*\n$/);
});
