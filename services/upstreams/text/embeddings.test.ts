import { expect, test } from "vitest";
import type { JsonValue } from "#kit/base/json.ts";
import { readEmbeddings, type VectorFormat } from "./embeddings.ts";

/** Vectors that are shown of such an answer. Undefined: it is refused. */
function shown(embeddings: JsonValue[], format: VectorFormat): JsonValue[] | undefined {
  const data = embeddings.map((embedding, index) => ({ index, embedding }));
  const asked = { modelId: "m", inputs: embeddings.length, format };
  try {
    const { object } = readEmbeddings({ data }, asked);
    return (object.data as { embedding: JsonValue }[]).map(({ embedding }) => embedding);
  } catch {
    return undefined;
  }
}

const base64 = (...numbers: number[]) =>
  Buffer.from(new Float32Array(numbers).buffer).toString("base64");

test.each<[string, number]>([
  ["beyond 32 bits", 1e39],
  ["beyond JSON", JSON.parse("-1e400")],
])("a number %s is none of a vector", (_, number) => {
  expect(shown([[1, number]], "base64")).toBeUndefined();
  expect(shown([[1, number]], "float")).toBeUndefined();
});

test("base64 without padding gets it, and bytes of no whole number are no vector", () => {
  const padded = base64(0.25);
  expect(shown([padded.replaceAll("=", "")], "base64")).toEqual([padded]);
  expect(shown([padded.replaceAll("=", "")], "float")).toEqual([[0.25]]);
  for (const broken of ["AAA=", "AAAAAAA=", "AA-_AA==", ""]) {
    expect(shown([broken], "base64")).toBeUndefined();
  }
  expect(shown([base64(Number.NaN)], "float")).toBeUndefined();
});

test("vectors that are together too long as numbers are no answer", () => {
  const half = Buffer.alloc(6_000_000, 1).toString("base64");
  expect(shown([half], "float")).toHaveLength(1);
  expect(shown([half, half], "float")).toBeUndefined();
  expect(shown([half, half], "base64")).toEqual([half, half]);
});
