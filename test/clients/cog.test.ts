import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { upstreamKeys } from "../e2e/catalog.ts";
import { creditsOf, download, ended, submit } from "../e2e/media-world.ts";
import { isOwnWorld, startWorld } from "../e2e/world.ts";
import { until } from "../support/until.ts";
import { noCog, startCog } from "../support/upstreams/cog.ts";

// genmesh's Replicate protocol with the program that runs the models there. The content of predictions is cog's own.

if (noCog !== undefined) process.stderr.write(`skipped: cog ${noCog}\n`);
const why = noCog ?? (isOwnWorld ? undefined : "needs an upstream and an operator of its own");
const predictor = fileURLToPath(new URL("cog_predictor.py", import.meta.url));
const png = await samplePng(64, 64);
const cog = why === undefined ? await startCog({ predictor, png }) : undefined;
const world =
  cog &&
  (await startWorld({
    catalog: (usual) => ({
      ...usual,
      upstreams: { own: { protocol: "replicate", baseUrl: cog.baseUrl, apiKeyEnv: "UP_KEY" } },
      models: [
        {
          ...{ id: "toy", kind: "image", upstream: "own", creditPrice: 3, maxImages: 4 },
          availableAspectRatios: ["auto"],
          call: {
            model: "toys/picture",
            input: { prompt: "${prompt}", num_outputs: "${count}" },
            output: "output[*]",
          },
        },
      ],
    }),
    env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1", UP_KEY: upstreamKeys.UP_KEY },
  }));
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await cog?.[Symbol.asyncDispose]();
});

test("a model that cog runs: made, broken, refused, cancelled", async ({ skip }) => {
  if (!world || !cog) return skip(why);
  const caller = await world.caller({ credits: 100n });
  const asked = (prompt: string, n = 1) => submit(caller, "images", { model: "toy", prompt, n });
  const seenThrough = async (prompt: string, n?: number) => ended(caller, await asked(prompt, n));

  const made = await seenThrough("a boat", 2);
  expect(made).toMatchObject({ status: "completed", creditsCharged: 6 });
  expect(made.images).toHaveLength(2);
  for (const { url } of made.images) {
    const { bytes: picture } = await download(caller, url);
    expect(picture.equals(png)).toBe(true);
  }
  expect(cog.predictions[0]).toMatchObject({
    input: { prompt: "a boat", num_outputs: 2 },
    said: { status: "succeeded" },
  });

  expect(await seenThrough("a broken one")).toMatchObject({
    ...{ status: "failed", creditsCharged: 0 },
    error: { code: "generation_failed" },
  });
  expect(await seenThrough("a refused one")).toMatchObject({
    ...{ status: "failed", creditsCharged: 0 },
    error: { code: "content_policy_violation" },
  });

  const slow = await asked("a slow one");
  await until("its progress", async () => {
    const { json } = await caller.get(`/images/generations/${slow.id}`);
    return json.progress === 50;
  });
  await caller.post(`/images/generations/${slow.id}/cancel`, {});
  expect(await ended(caller, slow)).toMatchObject({
    ...{ status: "failed", creditsCharged: 0 },
    error: { code: "job_cancelled" },
  });
  await until("cog to have been told", () => cog.predictions.at(-1)?.said.status === "canceled");
  expect(await creditsOf(caller)).toMatchObject({ available: 94, reserved: 0 });
});
