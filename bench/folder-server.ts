import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";

// The speed of a folder alone: the named file, in ranges, over node:http and nothing else. It prints its port.

const file = process.argv[2] ?? "";
const { size } = statSync(file);

const server = createServer((request, response) => {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  const [start, end] = [Number(from), Number(to)];
  const contentRange = `bytes ${start}-${end}/${size}`;
  response.writeHead(206, { "content-range": contentRange, "content-length": end - start + 1 });
  pipeline(createReadStream(file, { start, end }), response, () => {});
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
