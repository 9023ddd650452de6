import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { longestTurn } from "../../../test/support/longest-turn.ts";
import { readInline } from "./inline-file.ts";
import { generateLimits } from "./limits.ts";
import { readable, takeLongTexts } from "./long-texts.ts";

const mib = 1024 * 1024;
const { parsedTextBytes } = generateLimits;

/** The value of an answer, with its long texts back in their places. None of them was parsed with the rest. */
async function readAgain(json: string): Promise<unknown> {
  const { json: short, longTexts } = await takeLongTexts(Buffer.from(json), mib);
  const texts = new Map<string, string>();
  for (const [mark, text] of longTexts) texts.set(mark, (await readable(text)).slice(0));
  return JSON.parse(short.toString(), (_, value) => {
    if (typeof value === "string" && value.length > parsedTextBytes) throw new Error("too long");
    return texts.get(value) ?? value;
  });
}

const long = "Ab+/".repeat(parsedTextBytes);
test.each([
  { a: long, b: [long, "short", { c: long }], d: 7, e: null, "\\": "\\\\", f: "é" },
  { a: `\\"${long}\\`, b: `${'\\"'.repeat(parsedTextBytes)}`, c: '"' },
  { a: "x".repeat(parsedTextBytes), b: "x".repeat(parsedTextBytes + 1), c: "" },
  { a: `${long}\n${long}==`, [long.slice(0, 90)]: `\t${long}` },
  {},
])("an answer says the same without its long texts: %#", async (value) => {
  const json = JSON.stringify(value);
  expect(isDeepStrictEqual(await readAgain(json), value)).toBe(true);
  // Escaped the way Java and PHP write it.
  const escaped = json.replaceAll("=", "\\u003d").replaceAll("/", "\\/");
  expect(isDeepStrictEqual(await readAgain(escaped), value)).toBe(true);
});

test("escapes are found wherever a long text is cut", async () => {
  for (const shift of [0, 1, 2, 3, 4, 5, 6]) {
    const value = { a: "x".repeat(shift) + "=".repeat(200_000) };
    const json = JSON.stringify(value).replaceAll("=", "\\u003d");
    expect(isDeepStrictEqual(await readAgain(json), value)).toBe(true);
  }
});

test("a text without an end is left to the parser, as what is no JSON", async () => {
  for (const json of [`{"a":"${long}`, `{"a":"${long}\\"}`, "", '"', "\\", `"${long}" "`]) {
    const { json: short } = await takeLongTexts(Buffer.from(json), mib);
    expect(() => JSON.parse(short.toString())).toThrow();
  }
});

test("more than is parsed is too large, however short its texts are", async () => {
  const words = JSON.stringify(Array.from({ length: 300 }, () => "x".repeat(parsedTextBytes)));
  await expect(takeLongTexts(Buffer.from(words), mib)).rejects.toMatchObject({ kind: "too_large" });
});

/** The largest answer with a video of noise, as bytes. So no garbage of making it is collected while another is measured. */
function largestAnswer(form: "plain" | "in lines" | "many"): Buffer {
  const line = 76;
  const parts: Buffer[] = [Buffer.from('{"a":"data:video/mp4;base64,')];
  const digits = Buffer.from(randomBytes(1.5 * mib).toString("base64"));
  const lines = Array.from({ length: Math.floor(digits.length / line) }, (_, at) => [
    digits.subarray(at * line, (at + 1) * line),
    Buffer.from("\\n"),
  ]);
  const some = form === "in lines" ? Buffer.concat(lines.flat()) : digits;
  const room = generateLimits.imageAnswerBytes - 4 * mib;
  for (let bytes = 0; bytes + some.length < room; bytes += some.length) parts.push(some);
  const short = form === "many" ? Array.from({ length: 100_000 }, () => '"\\""').join() : "";
  return Buffer.concat([...parts, Buffer.from(`","b":[${short}]}`)]);
}

test.each(["plain", "in lines", "many"] as const)(
  "the largest answer never keeps the event loop: %s",
  async (form) => {
    const answer = largestAnswer(form);
    const turn = await longestTurn(async () => {
      const { longTexts } = await takeLongTexts(answer, mib);
      const [text] = longTexts.values();
      if (!text) throw new Error("nothing was taken out");
      const film = await readInline(text, generateLimits.videoBytes);
      expect(film.length).toBeGreaterThan(110 * mib);
    });
    expect(turn).toBeLessThan(50);
  },
);
