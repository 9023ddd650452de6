// Lists the kinds of models with their names and scopes.

import { may } from "./session.ts";
import type { ModelKind } from "./types.ts";

/** The names of the kinds of models, and the scope that a key needs to use each. */
export const modelKinds: readonly {
  value: ModelKind;
  label: string;
  scope: string;
}[] = [
  { value: "chat", label: "Chat", scope: "text" },
  { value: "image", label: "Image", scope: "images" },
  { value: "video", label: "Video", scope: "videos" },
  { value: "music", label: "Music", scope: "music" },
  { value: "speech", label: "Speech", scope: "speech" },
  { value: "embedding", label: "Embeddings", scope: "text" },
  { value: "transcription", label: "Transcription", scope: "text" },
];

/** The kinds that the reader can try in the playground. */
export const triedKinds = () => modelKinds.filter(({ scope }) => may(scope));
