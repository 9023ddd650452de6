import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ModelSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { inOrder, spread } from "./choice.ts";
import { lane } from "./lanes.fixture.ts";

const conversations = Array.from({ length: 10_000 }, (_, at) => `account model ${at}`);
const nameOf = (lanes: ReturnType<typeof inOrder>, at = 0) => lanes[at]?.upstream.name ?? "";

test.each([
  [{ a: 1, b: 1 }],
  [{ a: 3, b: 1 }],
  [{ a: 100, b: 1 }],
  [{ a: 5, b: 3, "b#2": 3, c: 1 }],
  [Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`lane#${at}`, at + 1]))],
])("10,000 conversations are shared as the weights %j are, within 2 %%", (weights) => {
  const lanes = Object.entries(weights).map(([name, weight]) => lane(name, { weight }));
  const all = Object.values(weights).reduce((sum, one) => sum + one, 0);
  const first = Map.groupBy(conversations, (stick) => nameOf(inOrder(lanes, stick)));
  for (const [name, weight] of Object.entries(weights)) {
    const share = (first.get(name)?.length ?? 0) / conversations.length;
    expect(Math.abs(share - weight / all)).toBeLessThan(0.02);
  }
});

test("a lane that is gone moves its own conversations alone, and to all others", () => {
  const lanes = ["a", "b", "c", "d"].map((name) => lane(name));
  const others = lanes.filter(({ upstream }) => upstream.name !== "b");
  const goneTo = new Set<string>();
  for (const stick of conversations) {
    const before = nameOf(inOrder(lanes, stick));
    const after = nameOf(inOrder(others, stick));
    if (before === "b") goneTo.add(after);
    else expect(after).toBe(before);
  }
  expect([...goneTo].sort()).toEqual(["a", "c", "d"]);
});

test("a new lane takes conversations, and moves none between the others", () => {
  const before = ["a", "b"].map((name) => lane(name));
  const after = [...before, lane("c")];
  for (const stick of conversations) {
    const now = nameOf(inOrder(after, stick));
    if (now !== "c") expect(now).toBe(nameOf(inOrder(before, stick)));
  }
});

test("the order of the catalog's entries means nothing within a level", () => {
  const lanes = ["a", "b", "c"].map((name, at) => lane(name, { weight: at + 1 }));
  const turned = [...lanes].reverse();
  for (const stick of conversations.slice(0, 100)) {
    expect(inOrder(turned, stick)).toEqual(inOrder(lanes, stick));
  }
});

test("the next level comes last, whatever its weights", () => {
  const lanes = [lane("spare", { level: 1, weight: 100 }), lane("a"), lane("b")];
  for (const stick of conversations.slice(0, 100)) {
    expect(nameOf(inOrder(lanes, stick), 2)).toBe("spare");
  }
});

test("a conversation's order is what it was in an earlier version, so an upgrade moves none", () => {
  const lanes = ["a", "b", "c", "d"].map((name) => lane(name));
  const orders = ["x", "y", "z"].map((stick) =>
    inOrder(lanes, stick)
      .map(({ upstream }) => upstream.name)
      .join(""),
  );
  expect(orders).toEqual(["badc", "bdca", "cadb"]);
});

describe("jobs, which are no part of a conversation,", () => {
  const upstreams = ["a", "b", "spare"].map((name) => lane(name).upstream);
  const shares = [
    { upstream: "a", level: 0, weight: 3 },
    { upstream: "b", level: 0, weight: 1 },
    { upstream: "spare", level: 1, weight: 1 },
  ];

  test("are spread by the weights, with the next level last", () => {
    const model = create(ModelSchema, { shares });
    const orders = Array.from({ length: 10_000 }, () => spread(upstreams, model));
    const share = orders.filter(([first]) => first?.name === "a").length / orders.length;
    // Forty times the spread that chance has.
    expect(Math.abs(share - 0.75)).toBeLessThan(0.17);
    expect(new Set(orders.map((order) => order[2]?.name))).toEqual(new Set(["spare"]));
  });

  test("go by the catalog's order where nothing is shared", () => {
    expect(spread(upstreams, create(ModelSchema, {}))).toEqual(upstreams);
  });
});
