import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Resolve, resolveByQuery, resolveBySystem } from "./resolve.ts";

const typeA = 1;
const typeAaaa = 28;
const serverFailure = 2;

let server: Socket;
let resolve: Resolve;
let asked: string[];
let answer: (name: string, type: number) => readonly Buffer[] | number | undefined;

/** A name server of one loopback socket: records, an error code, or silence. */
beforeEach(async () => {
  asked = [];
  server = createSocket("udp4", (query, from) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
    const end = at + 5;
    const type = query.readUInt16BE(at + 1);
    const name = labels.join(".").toLowerCase();
    asked.push(`${name} ${type}`);
    const given = answer(name, type);
    if (given !== undefined) server.send(reply(query.subarray(0, end), type, given), from.port);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  resolve = resolveByQuery([`127.0.0.1:${server.address().port}`]);
});

afterEach(() => server.close());

function reply(question: Buffer, type: number, given: readonly Buffer[] | number): Buffer {
  const records = typeof given === "number" ? [] : given;
  const header = Buffer.from(question.subarray(0, 12));
  header.writeUInt16BE(0x8180 | (typeof given === "number" ? given : 0), 2);
  header.writeUInt16BE(records.length, 6);
  header.writeUInt32BE(0, 8);
  const answers = records.map((data) => {
    const record = Buffer.alloc(12);
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([header, question.subarray(12), ...answers]);
}

const loopbackV6 = Buffer.from("00000000000000000000000000000001", "hex");

it("gives the addresses of both families", async () => {
  answer = (_name, type) =>
    type === typeA ? [Buffer.of(8, 8, 8, 8), Buffer.of(10, 0, 0, 1)] : [loopbackV6];
  expect(await resolve("images.example.com")).toEqual([
    { address: "::1", family: 6 },
    { address: "8.8.8.8", family: 4 },
    { address: "10.0.0.1", family: 4 },
  ]);
});

it("asks for the name as it is, without search domains", async () => {
  answer = () => 3;
  await expect(resolve("images.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
  expect(new Set(asked)).toEqual(
    new Set([`images.example ${typeA}`, `images.example ${typeAaaa}`]),
  );
});

it("makes do with one family where the other has none or fails", async () => {
  answer = (_name, type) => (type === typeA ? [Buffer.of(8, 8, 8, 8)] : []);
  expect(await resolve("a.example.com")).toEqual([{ address: "8.8.8.8", family: 4 }]);
  answer = (_name, type) => (type === typeA ? serverFailure : [loopbackV6]);
  expect(await resolve("a.example.com")).toEqual([{ address: "::1", family: 6 }]);
});

it("ends at once when the caller leaves", async () => {
  const leaving = new AbortController();
  answer = () => {
    leaving.abort();
    return undefined;
  };
  await expect(resolve("a.example.com", leaving.signal)).rejects.toMatchObject({
    code: "ECANCELLED",
  });
});

it("asks the system for local names in development", async () => {
  const found = await resolveBySystem("localhost");
  expect(found.map(({ address }) => address)).toContain("127.0.0.1");
});
