import { expect, test } from "vitest";
import { encodeForm } from "./form.ts";

test("a form is read as it was written, with any names and texts", async () => {
  const bytes = Buffer.from([0, 13, 10, 45, 45, 255]);
  const { headers, body } = await encodeForm([
    ["model", "whisper"],
    ["prompt", 'two\nlines, "quoted"\r\n--form-x--'],
    ["list[]", "a"],
    ["list[]", ""],
    ["file", { bytes, fileName: 'a "b"\r\nx: y.wav', mimeType: "audio/wav" }],
  ]);
  const form = await new Response(body, { headers }).formData();
  expect([...form.keys()]).toEqual(["model", "prompt", "list[]", "list[]", "file"]);
  expect(form.get("model")).toBe("whisper");
  // The form of browsers, and of the standard.
  expect(form.get("prompt")).toBe('two\r\nlines, "quoted"\r\n--form-x--');
  expect(form.getAll("list[]")).toEqual(["a", ""]);
  const file = form.get("file") as File;
  expect(file.type).toBe("audio/wav");
  expect(file.name).toBe('a "b"\r\nx: y.wav');
  expect(Buffer.from(await file.arrayBuffer())).toEqual(bytes);
});
