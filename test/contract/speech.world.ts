import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { pino } from "pino";
import { openFolderBlobs } from "#kit/blobs/folder.ts";
import type { BlobStore } from "#kit/blobs.ts";
import { createCatalogView } from "#kit/catalog-client.ts";
import { createHoldClient } from "#kit/holds.ts";
import { randomIds } from "#kit/ids.ts";
import { createMetrics } from "#kit/metrics.ts";
import { createPeers, type Peers } from "#kit/peers.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import type { RpcService, Service } from "#kit/rpc/service.ts";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { createBilling } from "../../services/billing/index.ts";
import { createCatalog } from "../../services/catalog/index.ts";
import type { SpeechTask } from "../../services/media/generate/port.ts";
import { createSpeech, type Speech } from "../../services/media/speech/index.ts";
import { jumpClock } from "../support/jump-clock.ts";

export const alice: Principal = { accountId: "acct_alice", keyId: "key_alice" };
export const alicesOther: Principal = { accountId: "acct_alice", keyId: "key_alice2" };

const tokens = { mesh: ["mesh-token"], admin: "admin-token" };
const silent = pino({ level: "silent" });

/** Speaks: what lies upstream is the test's. */
export type Speak = (task: SpeechTask) => Promise<{ bytes: Uint8Array; durationSeconds: number }>;

/** An MP3, as far as anybody here looks. */
export const mp3 = Buffer.from("an mp3");

/** What a process of media may do differently. */
export interface ProcessOptions {
  /** Puts something between speech and its stores. */
  wrap?: (stores: { sqlite: SqliteDatabase; blobs: BlobStore }) => {
    sqlite: SqliteDatabase;
    blobs: BlobStore;
  };
  /** Stands between speech and billing. */
  between?: Interceptor;
  retentionMs?: number;
}

/** Real billing and catalog, a database and a folder for speech, and processes of it that come and go. */
export async function createSpeechWorld(options: { usdMicros?: bigint } = {}) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-speech-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const clock = jumpClock();
  const others: RpcService[] = [];
  const processes: { speech: Speech; rpc: RpcService }[] = [];
  const tasks: SpeechTask[] = [];
  let speak: Speak = async () => ({ bytes: mp3, durationSeconds: 1.5 });

  const peersWith = (token: string, services: () => RpcService[], between: Interceptor[] = []) =>
    createPeers(() =>
      createDirectTransport({
        services,
        clientInterceptors: [tokenInterceptor(token), ...between],
        serverInterceptors: [
          serverErrorInterceptor({ log: silent, ids: randomIds }),
          accessInterceptor(tokens),
        ],
      }),
    );
  // Billing asks whichever process of media there is.
  const asking: Peers["media"]["resolveHold"] = async ({ holdId = "", accountId = "" }) => {
    const verdict = await processes.at(-1)?.speech.resolveHold(holdId, accountId);
    if (!verdict) throw new Error("nobody of media is there");
    return { $typeName: "genmesh.media.v1.ResolveHoldResponse", verdict };
  };
  const peers = peersWith("mesh-token", () => others);
  const common = { clock, ids: randomIds, log: silent };
  const started = async (service: Service) => {
    stack.use(service);
    others.push(...service.rpc);
    await service.start();
  };
  const file = join(import.meta.dirname, "../../deploy/catalog.yaml");
  await started(createCatalog({ ...common, metrics: createMetrics(), file }));
  const ledger = openSqlite(join(folder, "ledger.db"));
  stack.defer(() => ledger[Symbol.dispose]());
  await started(
    createBilling({
      ...common,
      metrics: createMetrics(),
      database: { kind: "sqlite", sqlite: ledger },
      peers: { ...peers, media: { ...peers.media, resolveHold: asking } },
    }),
  );
  const catalog = stack.use(createCatalogView({ ...common, catalog: peers.catalog }));
  await catalog.ready();
  const admin = peersWith("admin-token", () => others);
  const unit = Unit.USD_MICROS;
  const grant = { accountId: alice.accountId, unit, amount: options.usdMicros ?? 1_000_000n };
  await admin.billing.grant({ ...grant, operationId: "opening" });

  const openProcess = async ({ wrap, between, retentionMs }: ProcessOptions = {}) => {
    const sqlite = openSqlite(join(folder, "media.db"));
    const blobs = await openFolderBlobs({ ...common, folder: join(folder, "blobs") });
    const stores = wrap?.({ sqlite, blobs }) ?? { sqlite, blobs };
    const { billing } = peersWith("mesh-token", () => others, between ? [between] : []);
    const speech = createSpeech({
      ...common,
      metrics: createMetrics(),
      database: { kind: "sqlite", sqlite: stores.sqlite },
      blobs: stores.blobs,
      catalog,
      holds: createHoldClient(billing, { clock }),
      upstreams: {
        async speak(task) {
          tasks.push(task);
          return speak(task);
        },
      },
      retentionMs,
    });
    const rpc = { desc: MediaService, impl: speech.methods };
    const own = { speech, rpc };
    processes.push(own);
    const client = peersWith("mesh-token", () => [rpc]).media;
    const leave = () => {
      if (processes.includes(own)) processes.splice(processes.indexOf(own), 1);
    };
    return {
      speech,
      blobs,
      sqlite,
      /** Speaks a body; a short text by default. */
      generate(body: unknown = hello(), more: GenerateOptions = {}) {
        const { principal = alice, key, signal, admission } = more;
        return client.generateSpeech(
          {
            body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
            ...(admission ? { admission } : {}),
            ...(key === undefined ? {} : { idempotencyKey: key }),
          },
          { headers: callHeaders(principal, "req_test"), ...(signal ? { signal } : {}) },
        );
      },
      /** It is dead: nothing of it happens any more. */
      leave,
      async [Symbol.asyncDispose]() {
        await speech[Symbol.asyncDispose]();
        leave();
        sqlite[Symbol.dispose]();
      },
    };
  };
  const owned = stack.move();
  return {
    clock,
    tasks,
    openProcess,
    /** What upstream does from now on. */
    speaks(next: Speak) {
      speak = next;
    },
    async money(accountId = alice.accountId) {
      const { usdMicros } = await peers.billing.getBalance({ accountId });
      const { reserved = 0n, spent = 0n, spendable = 0n } = usdMicros ?? {};
      return { reserved, spent, spendable };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What a call may bring. */
export interface GenerateOptions {
  principal?: Principal;
  key?: string;
  signal?: AbortSignal;
  admission?: MessageInitShape<typeof AdmissionSchema>;
}

export type SpeechWorld = Awaited<ReturnType<typeof createSpeechWorld>>;
export type SpeechProcess = Awaited<ReturnType<SpeechWorld["openProcess"]>>;

/** A request of 12 characters: 180 USD micros by the shipped catalog. */
export function hello(more: Record<string, unknown> = {}) {
  return { model: "speech-1", input: "Hello there.", voice: "alloy", ...more };
}

/** Whole keys of a blob store. */
export async function keysOf(blobs: BlobStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of blobs.list()) keys.push(key);
  return keys;
}
