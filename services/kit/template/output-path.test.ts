import { expect, test } from "vitest";
import { parseOutputPath, readOutputPath } from "./output-path.ts";

const answer = {
  images: [{ url: "a" }, { url: "b" }, { other: 1 }],
  video: { url: "v" },
  output: "single",
  list: ["x", null, "y"],
  steps: [
    { type: "thought", url: "t" },
    { type: "model_output", url: "m" },
  ],
};

test.each([
  ["images[*].url", ["a", "b"]],
  ["images[1].url", ["b"]],
  ["images[7].url", []],
  ["video.url", ["v"]],
  ["output[*]", ["single"]],
  ["output", ["single"]],
  ["list[*]", ["x", "y"]],
  ["video.url.more", []],
  ["constructor.name", []],
  ["steps[type=model_output].url", ["m"]],
  ["steps[type=other].url", []],
  ["video[url=v].url", ["v"]],
])("%s reads %j", (text, found) => {
  expect(readOutputPath(parseOutputPath(text) ?? [], answer)).toEqual(found);
});

test.each([
  [""],
  ["."],
  [".a"],
  ["a..b"],
  ["a."],
  ["a[b]"],
  ["a[-1]"],
  ["a b"],
  ["a]"],
  ["[*]a"],
  ["a[=b]"],
  ["a[b=]"],
])("%j is no path", (text) => expect(parseOutputPath(text)).toBeUndefined());
