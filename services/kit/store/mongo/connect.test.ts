import { expect, test } from "vitest";
import { mongoDatabaseName, openMongo } from "./connect.ts";

test.each([
  ["mongodb://h/genmesh", "genmesh"],
  ["mongodb://u:p%40ss@h1:27017,h2:27018/my%2Ddb?replicaSet=rs", "my-db"],
  ["mongodb+srv://cluster.example/genmesh?tls=true", "genmesh"],
  ["mongodb://h", undefined],
  ["mongodb://h/", undefined],
  ["mongodb://h/?directConnection=true", undefined],
  ["sqlite:file", undefined],
])("%s names the database %s", (url, name) => {
  expect(mongoDatabaseName(url)).toBe(name);
});

test.each([
  ["mongodb://h/", /names no database/],
  ["http://h/genmesh", /names no database/],
  ["mongodb://h:notaport/genmesh", /.+/],
])("%s cannot be opened", (url, message) => {
  expect(() => openMongo({ url })).toThrow(message);
});
