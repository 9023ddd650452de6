/** Tests on a mesh with real servers, or nothing but a word of why not. */
export { describeWithServers as describeMesh } from "../support/on-servers.ts";
