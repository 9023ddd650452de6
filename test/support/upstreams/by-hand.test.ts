import { expect, test } from "vitest";
import { freePort } from "../free-port.ts";
import { doublesByHand, talk } from "./by-hand.ts";
import type { Facts } from "./declared.ts";
import { type DeclaredName, declaredFacts } from "./declared-facts.ts";
import { sampleOutputs } from "./double.ts";

test.each(Object.entries(doublesByHand))(
  "%s starts with a port, and does what each of its words says",
  async (_, start) => {
    const port = await freePort();
    await using double = await start(port, await sampleOutputs());
    expect(new URL(double.baseUrl).port).toBe(String(port));
    for (const act of Object.values(double.words)) await act();
    expect(Object.keys(double.words)).toContain("lost");
  },
);

const ofComfy = ["partial", "invalid", "failed", "restart", "dropSockets", "held", "lost", "down"];
/** Every service whose HTTP a catalog declares knows these. */
const ofDeclared = Object.fromEntries(
  Object.entries<Facts>(declaredFacts).map(([name, { answers }]) => [
    name,
    [...Object.keys(answers), ...["refused", "failed", "held", "finish", "endedLink", "down"]],
  ]),
) as Record<DeclaredName, string[]>;
/** Documented faults of upstreams, and behaviours that differ, without those that the doubles always have. */
const documented: Readonly<Record<keyof typeof doublesByHand, readonly string[]>> = {
  fal: [
    ...["queued", "refused", "timedOut", "neverStarted", "runnerGone", "runnerFailed", "tooEarly"],
    ...["locked", "lock", "cancelled", "held", "heldDeaf", "lost", "tooMany", "down"],
  ],
  replicate: [
    ...["atOnce", "oneUrl", "list", "removeData", "broken", "refused", "canceled", "aborted"],
    ...["insufficientCredit", "invalidInput", "throttled", "passDeadline", "held", "lost", "down"],
  ],
  comfyui: ofComfy,
  "comfyui-2025": ofComfy,
  "comfyui-2024": ofComfy,
  ...ofDeclared,
  elevenlabs: ["againstPolicy", "quotaExceeded", "insufficientCredits", "tooManyAtOnce", "busy"],
};

test.each(Object.entries(documented))("%s knows each of these by its name", async (name, words) => {
  const start = Object.entries(doublesByHand).find(([known]) => known === name)?.[1];
  await using double = await start?.(0, await sampleOutputs());
  expect(Object.keys(double?.words ?? {})).toEqual(expect.arrayContaining([...words]));
});

test("a double says where it is and what it knows, and refuses as it is told", async () => {
  await using double = await doublesByHand.fal(0, await sampleOutputs());
  const ask = () =>
    fetch(`${double.baseUrl}/fal-ai/flux/dev`, {
      ...{ method: "POST", body: JSON.stringify({ prompt: "x" }) },
      headers: { authorization: `Key ${double.key}` },
    });
  const told = async function* () {
    yield "what";
    yield "locked";
  };
  const said: string[] = [];
  for await (const line of talk("fal", double, told())) said.push(line);
  expect(said).toEqual([
    `fal: baseUrl ${double.baseUrl} key ${double.key}`,
    expect.stringMatching(/^fal knows: refused .*locked/),
    "fal: locked",
  ]);
  const answer = await ask();
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringMatching(/Exhausted/)]);
  expect((await ask()).status).toBe(200);
});
