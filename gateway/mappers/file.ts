import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { StoredFile } from "#proto/genmesh/media/v1/media_service_pb.ts";

/** The public document of a stored file: OpenAI's file object, and what was found out about the image. */
export function toFileDocument(file: StoredFile) {
  return {
    id: file.fileId,
    object: "file",
    bytes: Number(file.sizeBytes),
    created_at: file.createTime ? Math.floor(timestampMs(file.createTime) / 1_000) : 0,
    filename: file.fileName,
    purpose: file.purpose,
    // Files are verified before they are answered, so there is no other state.
    status: "processed",
    expires_at: null,
    mimeType: file.mimeType,
    sha256: file.sha256,
    width: file.width,
    height: file.height,
  };
}
