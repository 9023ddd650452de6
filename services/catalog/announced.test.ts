import { expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

function twoImages(): { upstreams: object; models: [object, object] } {
  const model = { kind: "image", upstream: "studio", creditPrice: 5 };
  return {
    upstreams: { studio: { protocol: "builtin" } },
    models: [
      { id: "a", ...model },
      { id: "b", ...model },
    ],
  };
}

test("the announced end of a model is a day or a time, in UTC milliseconds", () => {
  const file = twoImages();
  Object.assign(file.models[0], {
    deprecatedAt: "2027-01-31",
    shutdownDate: "2027-06-30T12:00:00+02:00",
  });
  const [first, second] = parseCatalog(JSON.stringify(file)).snapshot?.models ?? [];
  expect(first?.deprecatedAtMs).toBe(BigInt(Date.UTC(2027, 0, 31)));
  expect(first?.shutdownAtMs).toBe(BigInt(Date.UTC(2027, 5, 30, 10)));
  expect([second?.deprecatedAtMs, second?.shutdownAtMs]).toEqual([0n, 0n]);
});

test.each([
  [{ deprecatedAt: "soon" }, "models[0].deprecatedAt", /must be a day like/],
  [{ shutdownDate: "2027-02-30" }, "models[0].shutdownDate", /must be a day like/],
  [{ deprecatedAt: "2027-02-02", shutdownDate: "2027-02-01" }, "models[0].shutdownDate", /before/],
])("%j is refused", (life, path, message) => {
  const file = twoImages();
  Object.assign(file.models[0], life);
  expect(parseCatalog(JSON.stringify(file)).faults).toEqual([
    { path, message: expect.stringMatching(message) },
  ]);
});
