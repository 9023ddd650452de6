import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SnapshotSchema, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { boundsOf, createCapacity } from "./capacity.ts";
import { fresh } from "./lifecycle.fixture.ts";

test("the lanes of an upstream share its places", () => {
  const lanes = ["a", "a#2", "b"].map((name) => create(UpstreamSchema, { name, maxConcurrent: 1 }));
  const upstreams = Object.fromEntries(lanes.map((one) => [one.name, one]));
  const bounds = boundsOf(create(SnapshotSchema, { upstreams }));
  const capacity = createCapacity({ image: 1, video: 1, music: 1 });
  const job = fresh();
  const leave = capacity.take({ ...job, spec: { ...job.spec, upstreams: lanes.slice(1, 2) } });
  expect(new Set(capacity.full("music", bounds).fullUpstreams)).toEqual(new Set(["a", "a#2"]));
  leave();
  expect(capacity.full("music", bounds).fullUpstreams).toEqual([]);
});
