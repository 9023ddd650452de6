import { afterAll, expect, test } from "vitest";
import { type Document, ended, startMediaWorld, submit, threeKeys } from "./media-world.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());

test.each(["/requests", "/jobs", "/billing/entries"])(
  "%s has a range of time, whose end is excluded",
  async (path) => {
    const { first } = await threeKeys(world);
    await ended(first, await submit(first, "images", { model: "scripted-image", prompt: "x" }));
    const newest = (await first.get(`${path}?limit=1`)).json.data[0];
    const at = Math.floor(Date.parse(newest.endedAt ?? newest.createdAt) / 1_000);
    const idsIn = async (query: string) => {
      const { json } = await first.get(`${path}?${query}`);
      return json.data.map((one: Document) => one.id);
    };
    expect(await idsIn(`start_time=${at}`)).toContain(newest.id);
    expect(await idsIn(`start_time=${at}&end_time=${at + 1}&limit=1`)).toEqual([newest.id]);
    expect(await idsIn(`start_time=${at + 1}`)).toEqual([]);
    expect(await idsIn(`end_time=${at}`)).not.toContain(newest.id);
    expect(await idsIn(`start_time=${at + 1}&end_time=${at}`)).toEqual([]);
    for (const query of ["start_time=yesterday", "end_time=-1", "end_time=1.5"]) {
      const { status, json } = await first.get(`${path}?${query}`);
      const [param] = query.split("=");
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { code: "invalid_type", param } });
    }
  },
);

test("a file of entries has those of its range alone", async () => {
  const { all, first } = await threeKeys(world);
  await first.post("/responses", { model: "scripted", input: "x" });
  const now = Math.floor(world.now() / 1_000);
  const linesIn = async (range: string) => {
    const { text } = await all.get(`/billing/entries?format=csv&${range}`);
    return text.trim().split("\n").length;
  };
  expect(await linesIn(`start_time=${now - 3_600}`)).toBeGreaterThan(1);
  expect(await linesIn(`start_time=${now + 3_600}`)).toBe(1);
});
