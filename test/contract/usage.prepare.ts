import { create } from "@bufbuild/protobuf";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { errorRow, isRefusal } from "#kit/base/errors.ts";
import { ImageError } from "#kit/images/index.ts";
import { OutsideError } from "#kit/outside/index.ts";
import { createFairShare, tooManyAtOnce } from "#kit/share/fair-share.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { contextCountShare } from "../../services/text/base/limits.ts";
import { createSoundMeter } from "../../services/text/files/measuring/meter.ts";
import type { ImageSources } from "../../services/text/request/images.ts";
import type { OpaqueMaker } from "../../services/text/request/opaque.ts";
import { parseRequest } from "../../services/text/request/parse.ts";
import { prepareRequest } from "../../services/text/request/prepare.ts";
import type { PreparedRequest } from "../../services/text/request/prepared.ts";
import { createTokenCounter } from "../../services/text/tokens/count.ts";
import type { TextOperation } from "../../services/upstreams/text/port.ts";
import { testParsing } from "../support/parsing.ts";
import { snapshotWith } from "./usage.world.ts";

export const png = "data:image/png;base64,iVBORw0KGgo=";
export const mib = 1024 * 1024;
export const big = (bytes: number) =>
  `data:image/png;base64,${Buffer.alloc(bytes, 1).toString("base64")}`;

const images: ImageSources = {
  verifier: {
    async verify(source) {
      const first = Buffer.from(source as Uint8Array)[0];
      if (first === 0) throw new ImageError("corrupt");
      if (first === 2) throw new ImageError("busy");
      const found = { width: 64, height: 33, frames: 1, orientation: 1 };
      if (first === 0xff) return { ...found, format: "jpeg", mimeType: "image/jpeg" };
      return { ...found, format: "png", mimeType: "image/png" };
    },
  },
  outside: {
    async fetchBytes(url) {
      if (url.includes("large")) throw new OutsideError("too_large");
      if (url.includes("gone")) throw new OutsideError("bad_status", "404");
      return { bytes: Uint8Array.of(0xff, 0xd8), contentType: "image/jpeg" };
    },
  },
  allowPrivate: false,
  async readFile(fileId) {
    if (fileId !== "file_mine") throw Object.assign(await notFound(), {});
    return Uint8Array.of(0xff, 0xd8);
  },
};

async function notFound() {
  const { ErrorReason, RefusalError } = await import("#kit/base/errors.ts");
  return new RefusalError(ErrorReason.FILE_NOT_FOUND);
}

export interface Options {
  operation?: TextOperation;
  allowedModels?: string[];
  makers?: OpaqueMaker[];
  snapshot?: ReturnType<typeof snapshotWith>;
}

const workshop = createWorkshop();

export async function prepare(body: unknown, options: Options = {}): Promise<PreparedRequest> {
  const parsed = await parseRequest(
    options.operation ?? "responses",
    Buffer.from(JSON.stringify(body)),
    testParsing(),
  );
  const { allowedModels = [] } = options;
  const admission = create(AdmissionSchema, { allowedModels });
  return prepareRequest(
    parsed,
    { accountId: "acct_1", admission },
    {
      view: viewOf(options.snapshot ?? snapshotWith()),
      images,
      counter: createTokenCounter(workshop),
      contextCounts: createFairShare(contextCountShare, { late: tooManyAtOnce }),
      soundMeter: createSoundMeter(workshop),
      makers: async (hashes) => (options.makers ?? []).filter((m) => hashes.includes(m.hash)),
    },
    new AbortController().signal,
  );
}

export async function refusalOf(body: unknown, options?: Options): Promise<string> {
  const error = await Promise.resolve()
    .then(() => prepare(body, options))
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  if (!isRefusal(error)) throw error ?? new Error("it was accepted");
  return `${errorRow(error.reason).code} ${error.param ?? "-"}`;
}

export const ask = (more: object) => ({ model: "chat-1", input: "hi", ...more });
export const message = (content: unknown, role = "user") => ask({ input: [{ role, content }] });
export const image = (fields: object) => message([{ type: "input_image", ...fields }]);
export const chat = (more: object) => ({
  model: "chat-1",
  messages: [{ role: "user", content: "hi" }],
  ...more,
});
export const says = (fields: object) =>
  chat({ messages: [{ role: "user", content: "hi" }, fields] });
export const tool = (fields: object) => ask({ tools: [fields] });
