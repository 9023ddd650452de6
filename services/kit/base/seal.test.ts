import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSeal } from "./seal.ts";

const [first, second] = [randomBytes(32), randomBytes(32)];

test("a text is opened under its own name alone, and each seal of it differs", () => {
  const seal = createSeal([first]);
  const [one, other] = [seal.seal("fal", "sk-ä"), seal.seal("fal", "sk-ä")];
  expect(one).not.toBe(other);
  expect(one).not.toContain(Buffer.from("sk-ä").toString("base64"));
  expect(seal.open("fal", one)).toEqual({ text: "sk-ä", isOld: false });
  expect(seal.open("xai", one)).toBeUndefined();
});

test("another secret opens nothing, and an earlier one is told apart", () => {
  const sealed = createSeal([first]).seal("fal", "sk-1");
  expect(createSeal([second]).open("fal", sealed)).toBeUndefined();
  expect(createSeal([second, first]).open("fal", sealed)).toEqual({ text: "sk-1", isOld: true });
});

test("a text that was changed, cut or never sealed is not opened", () => {
  const seal = createSeal([first]);
  const sealed = seal.seal("fal", "sk-1");
  const bytes = Buffer.from(sealed.slice(3), "base64");
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(seal.open("fal", `v1.${changed.toString("base64")}`)).toBeUndefined();
    expect(seal.open("fal", `v1.${bytes.subarray(0, at).toString("base64")}`)).toBeUndefined();
  }
  for (const none of ["", "v1.", "sk-1", `v2.${sealed.slice(3)}`]) {
    expect(seal.open("fal", none)).toBeUndefined();
  }
});
