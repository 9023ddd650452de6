// Uploads reference images to a ComfyUI server, whose nodes load only files of the server.

import { digestInTurns } from "#kit/base/in-turns.ts";
import { encodeForm } from "../form.ts";
import type { DriverContext } from "../media/context.ts";
import { exchangeJson, urlOf } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import { generateLimits } from "../media/limits.ts";
import type { LoadedReference } from "../media/load-references.ts";
import type { GenerationTask } from "../media/port.ts";

/** The folder for references among the server's inputs. */
const inputFolder = "genmesh";

/**
 * Uploads a reference and resolves with the name by which nodes load it. The name is made of its bytes. So equal references exist once,
 * and a repeat adds no file. The server has no way to delete it.
 */
export async function uploadToComfyUi(
  context: DriverContext,
  { upstream, signal }: GenerationTask,
  reference: LoadedReference,
): Promise<string> {
  const digest = (await digestInTurns(reference.bytes)).slice(0, 32);
  const fileName = reference.fileName.replace(/^[^.]*/, digest);
  const form = await encodeForm([
    ["image", { ...reference, fileName }],
    ["subfolder", inputFolder],
    ["type", "input"],
  ]);
  const url = urlOf(upstream, "/upload/image");
  const call = { upstream, method: "POST", url, signal, ...form } as const;
  const { body } = await exchangeJson(context, call, generateLimits.answerBytes);
  const { name, subfolder } = body;
  // Where the name is taken, the upload gets another one, which only the answer holds.
  if (typeof name !== "string" || name === "") throw failed("the upstream names no upload");
  return typeof subfolder === "string" && subfolder !== "" ? `${subfolder}/${name}` : name;
}
