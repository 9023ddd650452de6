import { create } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  CatalogService,
  type WatchSnapshotsResponse,
  WatchSnapshotsResponseSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createRpcClient } from "./client.ts";

async function* messages(...versions: string[]): AsyncIterable<WatchSnapshotsResponse> {
  for (const version of versions) {
    yield create(WatchSnapshotsResponseSchema, { snapshot: { version } });
  }
}

/** A client of a transport that answers with these messages. */
function clientOf(message: AsyncIterable<WatchSnapshotsResponse>) {
  const answer = { header: new Headers({ x: "head" }), trailer: new Headers({ x: "end" }) };
  const transport = { stream: async () => ({ ...answer, stream: true, message }) };
  return createRpcClient(CatalogService, transport as unknown as Transport);
}

describe("a stream", () => {
  test("gives its messages, its head before them and its trailer after", async () => {
    const seen: (string | null | undefined)[] = [];
    const stream = clientOf(messages("v1", "v2")).watchSnapshots(
      {},
      {
        onHeader: (header) => seen.push(header.get("x")),
        onTrailer: (trailer) => seen.push(trailer.get("x")),
      },
    );
    for await (const { snapshot } of stream) seen.push(snapshot?.version);
    expect(seen).toEqual(["head", "v1", "v2", "end"]);
  });

  test("gives what was asked for before it began, in order", async () => {
    const it = clientOf(messages("v1", "v2")).watchSnapshots({})[Symbol.asyncIterator]();
    const steps = await Promise.all([it.next(), it.next(), it.next()]);
    const versions = steps.map((step) => (step.done ? "end" : step.value.snapshot?.version));
    expect(versions).toEqual(["v1", "v2", "end"]);
  });

  test("that could not begin rejects at its first message", async () => {
    const transport = { stream: () => Promise.reject(new Error("away")) };
    const client = createRpcClient(CatalogService, transport as unknown as Transport);
    const it = client.watchSnapshots({})[Symbol.asyncIterator]();
    await expect(it.next()).rejects.toThrow("away");
  });
});
