/** What a process may be: all of the mesh, or one part of it. */
export const roles = [
  "all",
  "gateway",
  "auth",
  "billing",
  "catalog",
  "text",
  "media",
  "media-worker",
] as const;

/** One of {@link roles}. */
export type Role = (typeof roles)[number];

/** A role whose process has one part of the mesh and meets the others over the wire. */
export type MeshRole = Exclude<Role, "all">;

/** The services that others call. */
export const peerNames = ["auth", "billing", "catalog", "text", "media"] as const;

/** One of {@link peerNames}. */
export type PeerName = (typeof peerNames)[number];

/** What a role cannot be without. */
export interface RoleNeeds {
  database: boolean;
  queue: boolean;
  blobs: boolean;
  /** Whom it calls. */
  peers: readonly PeerName[];
  /** Has it methods for internal callers, and so a gRPC port? */
  answers: boolean;
}

const nothing = { database: false, queue: false, blobs: false };
const stores = { database: true, queue: true, blobs: true };

/** What each role needs: the stores and peers that stand in its service's dependencies. */
export const needsOf: Readonly<Record<Role, RoleNeeds>> = {
  all: { ...stores, peers: [], answers: true },
  gateway: { ...nothing, blobs: true, peers: peerNames, answers: false },
  auth: { ...nothing, database: true, peers: [], answers: true },
  billing: { ...nothing, database: true, peers: ["text", "media"], answers: true },
  catalog: { ...nothing, peers: [], answers: true },
  text: { ...nothing, database: true, peers: ["billing", "catalog", "media"], answers: true },
  media: { ...stores, peers: ["billing", "catalog"], answers: true },
  "media-worker": { ...stores, peers: ["billing", "catalog"], answers: false },
};
