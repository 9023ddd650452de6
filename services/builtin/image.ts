// Makes the image that a prompt asks for, as PNG: a painted scene or joined references, with a caption. `worker.ts` calls it
// in a thread.

import type { ImageRequest, ImageResult } from "#common/words/builtin-models.ts";
import { paintCaption } from "./caption/caption.ts";
import { readMood } from "./paint/mood.ts";
import { createPicture, layOver, toRgbBytes, toSheet } from "./paint/planar.ts";
import { createScene, type Scene } from "./paint/scene.ts";
import { createStage } from "./paint/stage.ts";
import { paintReferences } from "./references.ts";
import { createRandom } from "./seed.ts";
import { sharp } from "./sharp.ts";
import type { Checkpoint } from "./worker.ts";

/** This many of a scene's nearest steps stay in front of the references. */
const STEPS_BEFORE_REFERENCES = 2;

/** Paints the image that belongs to a prompt, with the prompt as its caption, as PNG. */
export async function renderImage(
  request: ImageRequest,
  checkpoint: Checkpoint,
): Promise<ImageResult> {
  const { prompt, width, height, references = [] } = request;
  const random = createRandom(`image\u0000${request.seed ?? 0}\u0000${prompt}`);
  const mood = readMood(prompt, random.fork("mood"));
  // Layers have even sizes. An odd image is cut from one that is a pixel larger.
  const frame = { width: width + (width & 1), height: height + (height & 1) };
  let scene: Scene = createScene(mood, frame, 0, random);
  if (references.length > 0) {
    const backdrop = await paintReferences(references, frame, mood.palette);
    const cut = Math.max(1, scene.steps.length - STEPS_BEFORE_REFERENCES);
    const steps = scene.steps.toSpliced(cut, 0, { kind: "layer", paint: () => backdrop });
    scene = { ...scene, steps };
  }
  const picture = createPicture(frame, "rgb");
  const short = Math.min(frame.width, frame.height);
  createStage(scene, "rgb", short, 1, checkpoint).paint(picture, 0);
  checkpoint();
  const caption = await paintCaption(prompt, frame, mood.palette);
  layOver(picture, toSheet(caption, "rgb"), 0);
  checkpoint();
  const raw = { width: frame.width, height: frame.height, channels: 3 } as const;
  const bytes = await sharp(toRgbBytes(picture), { raw })
    .extract({ left: 0, top: 0, width, height })
    .png({ compressionLevel: 6 })
    .toBuffer();
  return { bytes: new Uint8Array(bytes), mimeType: "image/png", width, height };
}
