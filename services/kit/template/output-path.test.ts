import { expect, test } from "vitest";
import { parseOutputPath, readOutputPath } from "./output-path.ts";

const answer = {
  images: [{ url: "a" }, { url: "b" }, { other: 1 }],
  video: { url: "v" },
  output: "single",
  list: ["x", null, "y"],
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
])("%s reads %j", (text, found) => {
  expect(readOutputPath(parseOutputPath(text) ?? [], answer)).toEqual(found);
});

test.each([[""], ["."], [".a"], ["a..b"], ["a."], ["a[b]"], ["a[-1]"], ["a b"], ["a]"], ["[*]a"]])(
  "%j is no path",
  (text) => expect(parseOutputPath(text)).toBeUndefined(),
);
