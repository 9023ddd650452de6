// The table of the drivers of text, by protocol. Most protocols share the driver of `http-driver.ts`.

import { createBuiltinDriver } from "../builtin/text.ts";
import { genmeshText } from "../genmesh/text.ts";
import type { ProtocolServing } from "../protocols.ts";
import type { UpstreamsContext } from "./context.ts";
import type { UpstreamEvents } from "./events.ts";
import { createHttpDriver, type Driver } from "./http-driver.ts";

/** Makes the driver of each protocol that serves text. */
export const textDrivers: Readonly<
  Record<ProtocolServing<"chat">, (context: UpstreamsContext, events: UpstreamEvents) => Driver>
> = {
  openai: createHttpDriver,
  anthropic: createHttpDriver,
  "chat-completions": createHttpDriver,
  genmesh: (context, events) => createHttpDriver(context, events, genmeshText),
  builtin: (context) => createBuiltinDriver(context, context.builtin),
};
