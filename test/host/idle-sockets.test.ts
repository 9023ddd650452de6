import { expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import { openSocket } from "../support/caller-socket.ts";
import { startWatched } from "../support/watched-process.ts";

const sockets = 5_000;
/** Above this, idle WebSockets would cost a process more than the requests that they bring. */
const mostMib = 100;
/** The bound of one key is 64. */
const ofKey = 50;

test(`${sockets} idle WebSockets take at most ${mostMib} MiB`, async () => {
  await using genmesh = await startWatched(
    {
      upstreams: { studio: { protocol: "builtin" } },
      models: [chat("swift", { upstream: "studio" })],
    },
    { GENMESH_WS_CONNECTIONS: "8192", GENMESH_TRUST_PROXY: "127.0.0.1" },
  );
  const keys: string[] = [];
  for (let n = 0; n < sockets / ofKey; n++) keys.push((await genmesh.account()).key);
  const open: Disposable[] = [];
  try {
    const [first = ""] = keys;
    // The code of WebSockets is loaded with the first one.
    open.push(await openSocket(genmesh.baseUrl, first));
    const before = await genmesh.residentMib();
    for (const key of keys) {
      const some = keys.indexOf(key) === 0 ? ofKey - 1 : ofKey;
      const more = Array.from({ length: some }, () => openSocket(genmesh.baseUrl, key));
      open.push(...(await Promise.all(more)));
    }
    expect(open).toHaveLength(sockets);
    const more = (await genmesh.residentMib()) - before;
    process.stdout.write(`${sockets} idle WebSockets take ${more.toFixed(0)} MiB\n`);
    expect(more).toBeLessThan(mostMib);
  } finally {
    for (const socket of open) socket[Symbol.dispose]();
  }
});
