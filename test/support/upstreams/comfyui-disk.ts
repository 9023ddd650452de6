import type { MediaOutputs } from "../scripted-media-upstream.ts";
import { formOf } from "../scripted-media-upstream.ts";
import type { SeenRequest } from "../scripted-upstream.ts";
import { type Graph, type NodeClass, nodesBehind } from "./comfyui-nodes.ts";
import { type Answer, extensions, reply, replyText, typeOfBytes } from "./double.ts";

/** `--max-upload-size` of ComfyUI. */
export const uploadBytes = 100 * 1024 * 1024;

/** Files by `output/sub/name`. The folders are `input`, `output` and `temp`. */
export type Disk = Map<string, Uint8Array>;

/** Bytes that a LoadImage names. */
export function readInput(disk: Disk, name: string): Uint8Array | undefined {
  return disk.get(`input/${name.replace(/ \[input\]$/, "")}`);
}

/** Writes the file of an output node with the next number (folder_paths.py `get_save_image_path`), and gives its description. */
export function saveOutput(
  disk: Disk,
  outputs: MediaOutputs,
  graph: Graph,
  node: string,
  { key, kind, isTemp }: NonNullable<NodeClass["saves"]>,
): object {
  const type = isTemp ? "temp" : "output";
  const prefix = String(graph[node]?.inputs.filename_prefix ?? "ComfyUI_temp");
  const parts = prefix.split("/");
  const [name, subfolder] = [parts.at(-1) ?? "", parts.slice(0, -1).join("/")];
  const items = Array.from({ length: kind === "image" ? batchOf(graph, node) : 1 }, (_, index) => {
    const still = outputs.images[index % outputs.images.length] ?? new Uint8Array();
    const bytes = kind === "video" ? outputs.video : kind === "sound" ? outputs.sound : still;
    const before = [...disk.keys()].filter((path) => path.startsWith(`${type}/${prefix}_`));
    const count = String(before.length + 1).padStart(5, "0");
    const filename = `${name}_${count}_.${extensions[typeOfBytes(bytes)]}`;
    disk.set(pathOf(type, subfolder, filename), bytes);
    const format = key === "gifs" && { format: "video/h264-mp4", frame_rate: 8 };
    return { filename, subfolder, type, ...format };
  });
  return { [key]: items, ...(kind === "video" && key === "images" && { animated: [true] }) };
}

/** `GET /view`. */
export function viewFile(disk: Disk, query: URLSearchParams): Answer {
  const filename = query.get("filename");
  if (filename === null) return replyText(404);
  const [type, subfolder] = [query.get("type") ?? "output", query.get("subfolder") ?? ""];
  if (filename === "" || filename.startsWith("/") || filename.includes("..")) return replyText(400);
  if (!/^(input|output|temp)$/.test(type)) return replyText(400);
  if (subfolder.split("/").includes("..")) return replyText(403);
  const bytes = disk.get(pathOf(type, subfolder, filename.split("/").at(-1) ?? ""));
  const headers = { "content-disposition": `filename="${filename}"` };
  return bytes ? { kind: "file", bytes, type: typeOfBytes(bytes), headers } : replyText(404);
}

/** `POST /upload/image`: equal bytes keep the name. Other bytes under a taken name become `name (1)`. */
export async function takeUpload(disk: Disk, seen: SeenRequest): Promise<Answer> {
  if (seen.raw.length > uploadBytes) return replyText(413);
  const form = await formOf(seen).catch(() => undefined);
  const image = form?.get("image");
  if (!(image instanceof File) || image.name === "") return replyText(400);
  const type = String(form?.get("type") ?? "input");
  const subfolder = String(form?.get("subfolder") ?? "");
  const isInside = ![...subfolder.split("/"), ...image.name.split("/")].includes("..");
  if (!isInside || subfolder.startsWith("/")) return replyText(400);
  const bytes = Buffer.from(await image.arrayBuffer());
  const dot = image.name.lastIndexOf(".");
  const stem = dot > 0 ? image.name.slice(0, dot) : image.name;
  let name = image.name;
  const taken = () => disk.get(pathOf(type, subfolder, name));
  const overwrite = /^(true|1)$/.test(String(form?.get("overwrite") ?? ""));
  for (let i = 1; !overwrite && taken() && !bytes.equals(taken() as Uint8Array); i++)
    name = `${stem} (${i})${image.name.slice(stem.length)}`;
  disk.set(pathOf(type, subfolder, name), bytes);
  return reply(200, { name, subfolder, type });
}

/** The number of images that the graph makes at once. */
function batchOf(graph: Graph, node: string): number {
  const sizes = nodesBehind(graph, node).map((id) => Number(graph[id]?.inputs.batch_size ?? 1));
  return Math.max(1, ...sizes);
}

function pathOf(type: string, subfolder: string, filename: string): string {
  return [type, subfolder, filename].filter((part) => part !== "").join("/");
}
