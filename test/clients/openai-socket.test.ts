import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, expect, test } from "vitest";
import { startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

test("OpenAI's own client of the socket gets a response", async () => {
  const { baseUrl: baseURL, key: apiKey } = await world.caller();
  const socket = new ResponsesWS(new OpenAI({ baseURL, apiKey }));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.on("error", reject);
  socket.on("response.completed", ({ response }) => resolve(response.status ?? ""));
  socket.send({ type: "response.create", model: "chat-1", input: "Hi" });
  expect(await promise).toBe("completed");
  socket.close();
});
