/** Tests on a mesh with real servers. Without them, a skipped test shows the reason. */
export { describeWithServers as describeMesh } from "../support/on-servers.ts";
