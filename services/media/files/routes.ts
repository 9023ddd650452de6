// Answers the methods about files: upload, get, list, delete, read, and find by a path.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { readInTurns } from "#kit/base/in-turns.ts";
import { type Principal, principalOf } from "#kit/rpc/principal.ts";
import { BlobNotFoundError } from "#kit/store/blobs.ts";
import {
  FileArea,
  type LocateFileRequest,
  type MediaService,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { clearFile } from "./clear.ts";
import type { GeneratedFiles, LocatedFile, StorageContext } from "./context.ts";
import { type AccountFile, blobKeyOf } from "./file.ts";
import { defaultPageSize, maxPageSize } from "./limits.ts";
import { toStoredFile } from "./messages.ts";
import { downloadName, suffixOf } from "./names.ts";
import type { Uploads } from "./upload.ts";

/** The parts that the routes need. */
export interface FilesRoutesContext extends StorageContext {
  uploads: Uploads;
  generated: Pick<GeneratedFiles, "locate">;
}

/** The RPCs of MediaService that are about files. */
export type FilesMethods = Pick<
  ServiceImpl<typeof MediaService>,
  "uploadFile" | "getFile" | "listFiles" | "deleteFile" | "readFile" | "locateFile"
>;

/** Makes the RPCs. */
export function createFilesRoutes(context: FilesRoutesContext): FilesMethods {
  const { clock, store, blobs, uploads, events } = context;

  const mustFind = async ({ accountId }: Principal, fileId: string): Promise<AccountFile> => {
    const file = await store.find(accountId, fileId);
    return file?.state === "ready" ? file : refuse(ErrorReason.FILE_NOT_FOUND);
  };

  return {
    async uploadFile(messages, call) {
      const { file, replayed } = await uploads.upload(principalOf(call), messages, call.signal);
      return { file: toStoredFile(file), replayed };
    },
    async getFile({ fileId }, call) {
      return { file: toStoredFile(await mustFind(principalOf(call), fileId)) };
    },
    async listFiles({ pageSize, after, purpose, ascending }, call) {
      const size = checkPageSize(pageSize);
      const { accountId } = principalOf(call);
      const [files, usage, count] = await Promise.all([
        store.list(accountId, {
          after: after === "" ? undefined : after,
          limit: size + 1,
          purpose: purpose === "" ? undefined : purpose,
          ascending,
        }),
        context.quota.usage(accountId),
        store.count(accountId),
      ]);
      if (!files) refuse(ErrorReason.INVALID_VALUE, { param: "after" });
      return {
        files: files.slice(0, size).map(toStoredFile),
        hasMore: files.length > size,
        quota: {
          usedBytes: BigInt(usage.usedBytes + usage.reservedBytes),
          limitBytes: BigInt(context.quotaBytes),
          files: BigInt(count),
        },
      };
    },
    async deleteFile({ fileId }, call) {
      const file = await store.remove(principalOf(call).accountId, fileId, clock.now());
      if (!file) refuse(ErrorReason.FILE_NOT_FOUND);
      events.deleted(file);
      // The file's quota should be free when this is answered. If that fails, the sweeper frees it.
      await clearFile(file, context).catch((error) =>
        events.trouble("a deleted file is left to the sweeper", fileId, error),
      );
      return {};
    },
    async readFile({ fileId }, call) {
      const file = await mustFind(principalOf(call), fileId);
      try {
        const content = await readInTurns(await blobs.openRead(blobKeyOf(file)));
        return { content, mimeType: file.mimeType };
      } catch (error) {
        // The file was deleted in between.
        if (error instanceof BlobNotFoundError)
          refuse(ErrorReason.FILE_NOT_FOUND, { cause: error });
        throw error;
      }
    },
    async locateFile(request, call) {
      const found = await locate(request, principalOf(call), context);
      if (!found) refuse(ErrorReason.FILE_NOT_FOUND);
      const { blobKey, mimeType, sizeBytes, sha256, createdAt, fileName } = found;
      return {
        blobKey,
        mimeType,
        sizeBytes: BigInt(sizeBytes),
        sha256,
        fileName: downloadName(fileName, mimeType),
        createTime: timestampFromMs(createdAt),
      };
    },
  };
}

function checkPageSize(pageSize: number): number {
  if (pageSize === 0) return defaultPageSize;
  if (pageSize < 1 || pageSize > maxPageSize) {
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "page_size" } });
  }
  return pageSize;
}

async function locate(
  { area, parentId, fileId }: LocateFileRequest,
  principal: Principal,
  { store, generated }: FilesRoutesContext,
): Promise<(LocatedFile & { fileName: string }) | undefined> {
  if (area === FileArea.UPLOADS) {
    const file = await store.find(principal.accountId, fileId);
    const isThere = file?.state === "ready" && parentId === "";
    return isThere ? { ...file, blobKey: blobKeyOf(file) } : undefined;
  }
  const generatedArea = generatedAreas.find((one) => one === area);
  if (!generatedArea) return undefined;
  const file = await generated.locate({ area: generatedArea, parentId, fileId }, principal);
  return file && { ...file, fileName: `${fileId}.${suffixOf(file.mimeType)}` };
}

const generatedAreas = [FileArea.IMAGES, FileArea.VIDEOS, FileArea.MUSIC, FileArea.SPEECH] as const;
