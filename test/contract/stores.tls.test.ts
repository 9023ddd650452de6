import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBackend } from "../support/backends.ts";
import { certificateFolder, noCertificates, type Pair } from "../support/certificates.ts";
import { ownStores } from "../support/stores.ts";
import { openTlsFront } from "../support/tls-front.ts";

const run = promisify(execFile);
const script = join(import.meta.dirname, "stores.tls-child.ts");
const found = await Promise.all((["mongodb", "nats", "s3"] as const).map(findBackend));
const notes = [noCertificates ?? "", ...found.map(({ note }) => note)].join("");

describe.skipIf(noCertificates || found.some(({ url }) => !url))(
  `stores whose certificates a private authority signed${notes}`,
  () => {
    const stack = new AsyncDisposableStack();
    let pair: Pair;
    let caFile: string;
    let stores: NonNullable<Awaited<ReturnType<typeof ownStores>>>;
    beforeAll(async () => {
      const folder = stack.use(await certificateFolder());
      const authority = await folder.authority();
      caFile = join(folder.path, "ca.crt");
      await writeFile(caFile, authority.ca);
      pair = await authority.issue("127.0.0.1", "localhost");
      stores = (await ownStores(stack, "tls")) ?? expect.unreachable("a server is missing");
    });
    afterAll(() => stack.disposeAsync());

    const urls = {
      s3: (url: URL) => url.href.replace(/^s3\+http:/, "s3+https:"),
      // The driver checks a certificate for the server's name, and so accepts none for an address.
      nats: (url: URL) => {
        url.hostname = "localhost";
        return url.href.replace(/^nats:/, "tls:");
      },
      mongodb: (url: URL) => {
        url.searchParams.set("tls", "true");
        // The default is half a minute. A refused client is refused at once, and tries again until then.
        url.searchParams.set("serverSelectionTimeoutMS", "5000");
        return url.href;
      },
    };
    test.each(["s3", "nats", "mongodb"] as const)(
      "%s is used by a process with NODE_EXTRA_CA_CERTS, and by no other",
      { timeout: 240_000 },
      async (kind) => {
        const target = new URL(stores.urls[kind]);
        const greets = kind === "nats";
        await using front = await openTlsFront(target.host, pair, { greets });
        target.host = front.address;
        const args = [script, kind, urls[kind](target), stores.name];
        const use = async (env: NodeJS.ProcessEnv) =>
          (await run(process.execPath, args, { env: { PATH: process.env.PATH, ...env } })).stdout;
        expect(await use({ NODE_EXTRA_CA_CERTS: caFile })).toBe("used\n");
        expect(await use({})).toBe("refused\n");
      },
    );
  },
);
