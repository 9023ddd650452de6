import { inTurns, joinInTurns } from "#kit/base/in-turns.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import type { LargeAnswers } from "../large/index.ts";
import type { Metered } from "../paid/paid-request.ts";
import { piecesWithCost, type ShownCharge } from "./shown-usage.ts";

/**
 * The body with its cost and the tokens that genmesh counted. Where no thread for large answers is free, this process adds the cost bit
 * by bit. The counted tokens need the thread.
 */
export async function withShownCost(
  operation: TextOperation,
  body: Uint8Array,
  charge: ShownCharge,
  large: Pick<LargeAnswers, "run">,
  { accountId }: Pick<Metered, "accountId">,
): Promise<Uint8Array> {
  try {
    return await large.run("withUsage", { accountId }, body, operation, charge);
  } catch (error) {
    if (charge.estimate) throw error;
    return withCostInTurns(body, charge.cost);
  }
}

/** The last frames of a stream, in the same way. `inChunk`: see `lastFramesWithUsage`. */
export async function lastFramesShown(
  operation: TextOperation,
  frame: Uint8Array,
  { cost, estimate, inChunk }: ShownCharge & { inChunk: boolean },
  large: Pick<LargeAnswers, "run">,
  { accountId }: Pick<Metered, "accountId">,
): Promise<Uint8Array[]> {
  const charge = { cost, estimate };
  try {
    return await large.run("lastFrames", { accountId }, frame, operation, charge, inChunk);
  } catch (error) {
    if (estimate) throw error;
    return [await withCostInTurns(frame, cost)];
  }
}

async function withCostInTurns(json: Uint8Array, cost: bigint | undefined): Promise<Uint8Array> {
  if (cost === undefined) return json;
  const pieces = await inTurns(piecesWithCost(json, cost));
  return pieces.length === 1 ? json : joinInTurns(pieces);
}
