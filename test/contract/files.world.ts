import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { pino } from "pino";
import sharp from "sharp";
import { expect } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import { noise } from "#kit/images/samples.fixture.ts";
import { createGuardedFetcher, type GuardedFetcher } from "#kit/outside/index.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import type { Database } from "#kit/store/database.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import {
  MediaService,
  type UploadFileRequestSchema,
  type UploadHeaderSchema,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { openFileStores } from "../../services/media/files/context.ts";
import { createFiles, type GeneratedFiles } from "../../services/media/files/index.ts";
import { quotaBytesOf } from "../../services/media/files/quota.ts";
import { type OpenWorldStores, openEmbeddedStores } from "../support/world-stores.ts";
import type { Mortal } from "./files.mortal.ts";

export const alice: Principal = { accountId: "acct_alice", keyId: "key_alice" };
export const alicesOther: Principal = { accountId: "acct_alice", keyId: "key_alice2" };
export const bob: Principal = { accountId: "acct_bob", keyId: "key_bob" };

/** The state of a world. After the first world has died, another can be opened on it. */
export interface Ground extends AsyncDisposable {
  folder: string;
  clock: ManualClock;
}

export async function newGround(): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-media-files-"));
  return {
    folder,
    clock: manualClock(),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

/** The part of a quota that files of these sizes take. */
export function quotaOfSizes(...sizes: number[]): number {
  return sizes.reduce((sum, sizeBytes) => sum + quotaBytesOf({ sizeBytes }), 0);
}

/** Options of a world. */
export interface FilesWorldOptions {
  ground: Ground;
  verifier: Pick<ImageVerifier, "verify">;
  quotaBytes?: number;
  fetcher?: GuardedFetcher;
  generated?: Partial<GeneratedFiles>;
  /** Default: embedded, on the ground. */
  openStores?: OpenWorldStores | undefined;
  /** Replaces the opened database. */
  database?: Database;
  /** Puts something between the service and its stores. */
  wrap?: Mortal["wrap"];
}

/** The real file storage on real stores, behind the interceptors of real calls. It is not started. */
export async function createFilesWorld(options: FilesWorldOptions) {
  const { folder, clock } = options.ground;
  const ids = randomIds;
  const log = pino({ level: "silent" });
  const metrics = createMetrics();
  const opened = await (options.openStores ?? openEmbeddedStores)(folder, clock);
  const { blobs } = opened;
  const database = options.database ?? opened.database;
  const stores = options.wrap?.({ database, blobs }) ?? { database, blobs };
  const tempFolder = join(folder, "uploads");
  const files = createFiles({
    clock,
    ids,
    log,
    metrics,
    ...stores,
    verifier: options.verifier,
    fetcher: options.fetcher ?? createGuardedFetcher({ allowPrivate: true }),
    tempFolder,
    generated: {
      locate: async () => undefined,
      lend: async () => undefined,
      needsReferences: async () => true,
      ...options.generated,
    },
    ...(options.quotaBytes === undefined ? {} : { quotaBytes: options.quotaBytes }),
  });
  await files.start();
  const clientOf = (principal: Principal) =>
    createClient(
      MediaService,
      createDirectTransport({
        services: () => [{ desc: MediaService, impl: files.methods }],
        clientInterceptors: [
          tokenInterceptor("mesh-token"),
          (next) => (req) => {
            for (const [name, value] of Object.entries(callHeaders(principal, "req_1"))) {
              req.header.set(name, value);
            }
            return next(req);
          },
        ],
        serverInterceptors: [
          serverErrorInterceptor({ log, ids }),
          accessInterceptor({ mesh: ["mesh-token"] }),
        ],
      }),
    );
  return {
    files,
    blobs,
    clock,
    metrics,
    tempFolder,
    client: clientOf(alice),
    clientOf,
    stores: openFileStores(database),
    /** The stored figures of an account: its used bytes and those of running uploads. */
    async quotaOf(accountId = alice.accountId): Promise<{ used: number; reserved: number }> {
      const { usedBytes, reservedBytes } = await openFileStores(database).quota.usage(accountId);
      return { used: usedBytes, reserved: reservedBytes };
    },
    /** The bytes of an account on disk that its quota does not count. */
    async keptOf(accountId = alice.accountId): Promise<number> {
      return (await openFileStores(database).quota.usage(accountId)).keptBytes;
    },
    /** The part of the quota that the account's visible files take. */
    async listedQuota(principal = alice): Promise<number> {
      const { files: all } = await clientOf(principal).listFiles({ pageSize: 1_000 });
      return quotaOfSizes(...all.map((file) => Number(file.sizeBytes)));
    },
    /** Sum of the bytes of all files that an account sees. */
    async listedBytes(principal = alice): Promise<number> {
      const { files: all } = await clientOf(principal).listFiles({ pageSize: 1_000 });
      return all.reduce((sum, file) => sum + Number(file.sizeBytes), 0);
    },
    async blobKeys(): Promise<string[]> {
      const keys: string[] = [];
      for await (const { key } of blobs.list()) keys.push(key);
      return keys.sort();
    },
    spooled: () => readdir(tempFolder),
    /** Closes what a dead process has open. */
    closeStores: () => opened[Symbol.asyncDispose](),
    async [Symbol.asyncDispose]() {
      await files[Symbol.asyncDispose]();
      await opened[Symbol.asyncDispose]();
    },
  };
}

export type FilesWorld = Awaited<ReturnType<typeof createFilesWorld>>;

/** A PNG about as large as its pixels. */
export async function uncompressed(width: number, height: number): Promise<Buffer> {
  const pixels = await noise(width, height).raw().toBuffer();
  const raw = { width, height, channels: 3 } as const;
  return sharp(pixels, { raw }).png({ compressionLevel: 0 }).toBuffer();
}

/** Messages as an async stream. */
export async function* sent<T>(messages: Iterable<T>): AsyncIterable<T> {
  yield* messages;
}

type UploadMessage = MessageInitShape<typeof UploadFileRequestSchema>;

/** The messages of an upload. */
export async function* uploadOf(
  bytes: Uint8Array,
  header: MessageInitShape<typeof UploadHeaderSchema> = {},
  chunkBytes = 64 * 1024,
): AsyncGenerator<UploadMessage> {
  const value = { fileName: "cat.png", purpose: "vision", ...header };
  yield { part: { case: "header", value } };
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    yield { part: { case: "chunk", value: bytes.subarray(at, at + chunkBytes) } };
  }
}

/** Checks that nothing of a failed upload is left. */
export async function expectNothingIn(world: FilesWorld): Promise<void> {
  expect(await world.quotaOf()).toEqual({ used: 0, reserved: 0 });
  expect(await world.blobKeys()).toEqual([]);
  expect(await world.spooled()).toEqual([]);
  expect((await world.client.listFiles({})).files).toEqual([]);
}
