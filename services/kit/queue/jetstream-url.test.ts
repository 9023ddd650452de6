import { expect, test } from "vitest";
import { parseNatsUrl } from "./jetstream-url.ts";

test.each([
  ["nats://localhost", { servers: ["localhost:4222"], secure: false, auth: undefined }],
  ["tls://nats:4443/", { servers: ["nats:4443"], secure: true, auth: undefined }],
  [
    "nats://us%40er:p%3A%2Fw@a:1,b.example.com,[::1]:3",
    {
      servers: ["a:1", "b.example.com:4222", "[::1]:3"],
      secure: false,
      auth: { user: "us@er", pass: "p:/w" },
    },
  ],
  ["nats://t%2Fk@a:1", { servers: ["a:1"], secure: false, auth: { token: "t/k" } }],
])("%s", (url, target) => {
  expect(parseNatsUrl(url)).toEqual(target);
});

test.each([
  ["http://a:s3cret@host", "it has another form"],
  ["nats://", "it has another form"],
  ["nats://a:s3/cret@host", "it has another form"],
  ["nats://a:s3@cret@host", "it has another form"],
  ["nats://host/path", "it has another form"],
  ["nats://a:s3cret@host,", "a server is not HOST:PORT"],
  ["nats://a:s3cret@host:port", "a server is not HOST:PORT"],
  ["nats://a:s3cret@host:0", "a port is not from 1 to 65535"],
  ["nats://a:s3cret@host:65536", "a port is not from 1 to 65535"],
  ["nats://a:s3:cret@host", "USER:PASSWORD has more than one colon"],
  ["nats://:s3cret@host", "USER, PASSWORD or TOKEN is empty"],
  ["nats://@host", "USER, PASSWORD or TOKEN is empty"],
  ["nats://a:s3cret%zz@host", "USER, PASSWORD or TOKEN is not percent-encoded"],
])("%s: %s", (url, fault) => {
  expect(() => parseNatsUrl(url)).toThrow(TypeError);
  expect(() => parseNatsUrl(url)).toThrow(
    `must be nats://[USER:PASSWORD@|TOKEN@]HOST:PORT[,HOST:PORT…], or tls:, percent-encoded: ${fault}`,
  );
});
