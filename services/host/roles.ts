// Says which roles there are, and which stores and peers each needs. Configuration, services and the runner of a mesh go by it.

/** The roles of a process: all of the mesh, or one part of it. */
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

/** A role whose process has one part of the mesh and calls the others over the wire. */
export type MeshRole = Exclude<Role, "all">;

/** The services that others call. */
export const peerNames = ["auth", "billing", "catalog", "text", "media"] as const;

/** One of {@link peerNames}. */
export type PeerName = (typeof peerNames)[number];

/** The needs of a role. */
export interface RoleNeeds {
  database: boolean;
  queue: boolean;
  blobs: boolean;
  /** The peers that it calls. */
  peers: readonly PeerName[];
  /** Has it methods for internal callers, and so a gRPC port? */
  answers: boolean;
}

const nothing = { database: false, queue: false, blobs: false };
const stores = { database: true, queue: true, blobs: true };

/** The needs of each role: the stores and peers in its service's dependencies. */
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
