import type { Interceptor } from "@connectrpc/connect";
import { type ApplyRequest, BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type ScriptedUpstreams, scriptedUpstreams } from "./usage.upstream.ts";
import { createTextWorld, type TextWorld } from "./usage.world.ts";

/** The steps that a text request waited for, in order. `write` is a durable write. `call …` is a call of billing, with its operation. */
export interface TextSteps {
  /** Before the request was sent to its upstream. */
  sent: readonly string[];
  /** Between then and its end. */
  told: readonly string[];
}

/** The steps of the one request of `run`, in a world of its own on these upstreams. */
export async function textSteps(
  upstreams: ScriptedUpstreams,
  run: (of: TextWorld) => Promise<unknown>,
): Promise<TextSteps> {
  let steps: string[] = [];
  const between: Interceptor = (next) => (request) => {
    if (request.service.typeName === BillingService.typeName) {
      const { operations } = request.message as Partial<ApplyRequest>;
      steps.push(`call ${operations?.[0]?.operation.case ?? request.method.name}`);
    }
    return next(request);
  };
  const onWrite = (lazy: boolean) => {
    if (!lazy) steps.push("write");
  };
  let sent: string[] = [];
  const counted = scriptedUpstreams((request) => {
    sent = steps;
    steps = [];
    return upstreams.script(request);
  });
  await using world = await createTextWorld({ upstreams: counted, between, onWrite });
  steps = [];
  await run(world);
  return { sent, told: steps };
}
