// The calls of the API about files, which several screens make.

import { call, v1 } from "../api.ts";

/** An upload or import of the account, as `GET /files` has it. */
export interface StoredFile {
  id: string;
  bytes: number;
  /** Seconds since 1970. */
  created_at: number;
  filename: string;
  purpose: string;
  status: string;
  mimeType: string;
  width: number;
  height: number;
}

/** The address of a file's bytes for this page's session. */
export const contentOf = (id: string) => `${v1}/files/${encodeURIComponent(id)}/content`;

export async function uploadImage(file: Blob, name = (file as File).name): Promise<StoredFile> {
  const form = new FormData();
  // The API reads the purpose before it reads the bytes.
  form.append("purpose", "vision");
  form.append("file", file, name);
  return await call<StoredFile>("/files", { method: "POST", form });
}
