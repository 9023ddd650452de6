import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { RoleAllProcess } from "../../services/host/role-all.ts";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";

type Ask = (path: string, body?: unknown) => Promise<Response>;

const dayMs = 86_400_000;
const days = 30;

const everyScope = Object.values(Scope).filter((scope) => typeof scope === "number" && scope > 0);
const questions = ["Why is the sky blue?", "Name three rivers.", "What is a prime number?"];

/**
 * Uses a genmesh whose clock is a month behind. Each day has some requests of several keys, and today also has failed and running ones.
 * `pass` moves its clock forward. Answers the secret of a key with all rights, and its account.
 */
export async function useForAMonth(
  mesh: RoleAllProcess,
  pass: (ms: number) => void,
): Promise<{ secret: string; accountId: string }> {
  const { secret, accountId, topUp } = await makeOwner(mesh);
  const api = (key: string) => (path: string, body?: unknown) =>
    fetch(mesh.baseUrl + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const owner = api(secret);
  const makeKey = async (wanted: object) => {
    const answer = await owner("/keys", wanted);
    return api(((await answer.json()) as { key: string }).key);
  };
  const website = await makeKey({ name: "website", limit: 5, scopes: ["text", "models"] });
  const batch = await makeKey({ name: "nightly batch", models: ["chat-1", "chat-mini"] });
  await makeKey({ name: "intern", limit: 0.5, scopes: ["text", "models"] });
  for (let day = 0; day < days; day += 1) {
    const requests = [...Array((day * 7) % 5).keys()].map((turn) => {
      const input = `${questions[turn % questions.length]} ${"Please explain. ".repeat(day * 6)}`;
      const model = (day + turn) % 3 === 0 ? "chat-mini" : "chat-1";
      const ask = turn % 2 === 0 ? website : batch;
      return ask("/responses", { model, input, max_output_tokens: 200 + day * 10 });
    });
    if (day % 3 === 1) {
      requests.push(
        owner("/speech/generations", { model: "speech-1", input: "Good morning.", voice: "alloy" }),
      );
      requests.push(owner("/images/generations", { model: "image-1", prompt: "a fox in snow" }));
    }
    for (const answer of await Promise.all(requests)) await ended(owner, answer);
    pass(dayMs);
  }
  await today(owner);
  await topUp();
  await upload(mesh, secret);
  return { secret, accountId };
}

/** Waits for the end of a job, where the answer is one. Its day must not pass meanwhile. */
async function ended(ask: Ask, answer: Response): Promise<void> {
  const { id, terminal } = (await answer.json()) as { id?: string; terminal?: boolean };
  if (terminal !== false) return;
  await (await ask(`/jobs/${id}/events`)).arrayBuffer();
}

/** The failed and running requests of the day of the screenshots. */
async function today(ask: Ask): Promise<void> {
  const webhookUrl = "http://127.0.0.1:9/hooks/genmesh";
  const prompt = "a lighthouse at dusk, waves below";
  await ask("/images/generations", { model: "image-1", prompt, webhookUrl });
  await ask("/music/generations", {
    model: "music-1",
    mode: "instrumental",
    title: "A slow waltz",
    webhookUrl,
  });
  const videos = { model: "svc-video-1-5", prompt, seconds: 6, resolution: "480p" };
  await ask("/videos/generations", { ...videos, webhookUrl });
  const image = await ask("/images/generations", { model: "image-1", prompt, n: 4 });
  const { id } = (await image.json()) as { id: string };
  await ask(`/images/generations/${id}/cancel`, {});
}

/** Uploads a file to refer to. */
async function upload(mesh: RoleAllProcess, secret: string): Promise<void> {
  const form = new FormData();
  form.set("purpose", "vision");
  form.set("file", new Blob([new Uint8Array(await samplePng(640, 400))]), "harbour.png");
  const headers = { authorization: `Bearer ${secret}` };
  await fetch(`${mesh.baseUrl}/files`, { method: "POST", body: form, headers });
}

async function makeOwner(mesh: RoleAllProcess) {
  const transport = createGrpcTransport({
    baseUrl: `http://${mesh.grpcAddress}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${mesh.adminToken}`);
        return next(request);
      },
    ],
  });
  const auth = createClient(AuthService, transport);
  const billing = createClient(BillingService, transport);
  const { account } = await auth.createAccount({ name: "Acme Research" });
  const accountId = account?.accountId ?? "";
  const funds = [
    [Unit.USD_MICROS, 25_000_000n],
    [Unit.CREDITS, 10_000n],
  ] as const;
  for (const [unit, amount] of funds) {
    await billing.grant({ accountId, unit, amount, operationId: "opening" });
  }
  const settings = {
    notes: "Ada Park pays by invoice, at the start of a quarter.",
    requestsPerMinute: 300,
  };
  await auth.updateAccount({ accountId, body: new TextEncoder().encode(JSON.stringify(settings)) });
  await billing.setMonthlyGrant({ accountId, usdMicros: 20_000_000n, credits: 500n });
  for (const name of ["Northwind", "Blue Yonder Studio", "Tailspin Toys"]) {
    await auth.createAccount({ name });
  }
  const { secret } = await auth.createKey({ accountId, name: "owner", scopes: everyScope });
  const topUp = () =>
    billing.grant({ accountId, unit: Unit.USD_MICROS, amount: 10_000_000n, operationId: "today" });
  return { secret, accountId, topUp };
}
