import { expect, test } from "vitest";
import { type SeenSpan, startCollector, traceOf } from "../support/otlp.ts";
import { oneProcessOnly, startWorld } from "./world.ts";

const sampledBefore = `00-${"a1".repeat(16)}-${"b2".repeat(8)}-01`;
oneProcessOnly();

test("a trusted proxy's trace goes on, and what it left out is left out", async () => {
  await using own = await startCollector();
  await using other = await startWorld({
    env: {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${own.url}/v1/traces`,
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "api-key=of%20the%20collector",
      OTEL_BSP_SCHEDULE_DELAY: "20",
      GENMESH_TRUST_PROXY: "127.0.0.0/8",
    },
  });
  const mate = await other.caller();
  const ask = (traceparent: string) =>
    mate.post("/responses", { model: "scripted", input: "Hi" }, { headers: { traceparent } });
  await ask(sampledBefore.replace(/01$/, "00"));
  await ask(sampledBefore);
  const isLast = ({ name }: SeenSpan) => name === "chat scripted";
  const { root } = await traceOf("/v1/responses", isLast, own);
  expect(`00-${root.traceId}-${root.parentId}-01`).toBe(sampledBefore);
  expect(own.spans.filter(({ kind, name }) => kind === 2 && name.startsWith("POST"))).toEqual([
    root,
  ]);
  expect(own.headers[0]).toMatchObject({ "api-key": "of the collector" });
  expect(own.metrics()).toEqual([]);
});
