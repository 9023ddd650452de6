import { expect, test } from "vitest";
import { parseS3Url } from "./s3-url.ts";

test("a URL in full", () => {
  expect(
    parseS3Url("s3+https://AK%40:se%2Fcr%3At@s3.example.com:8443/my-bucket?region=eu-1"),
  ).toEqual({
    secure: true,
    host: "s3.example.com",
    port: 8443,
    bucket: "my-bucket",
    region: "eu-1",
    accessKey: "AK@",
    secretKey: "se/cr:t",
  });
});

test("what may be left out", () => {
  const target = parseS3Url("s3+http://a:b@minio/bucket/");
  expect(target).toMatchObject({ secure: false, host: "minio", port: 80, region: "us-east-1" });
  expect(parseS3Url("s3+https://a:b@minio/bucket").port).toBe(443);
});

test.each([
  ["s3://a:s3cret@host/bucket", "the scheme is another"],
  ["https://a:s3cret@host/bucket", "the scheme is another"],
  ["s3+http://a:s3cret/x@host/bucket", "it is no URL"],
  ["s3+http://a:s3cret@host:99999/bucket", "it is no URL"],
  ["s3+http://a:s3cret@host:0/bucket", "PORT is not from 1 to 65535"],
  ["s3+http://a:s3cret@[::1]:9000/bucket", "HOST is neither a name nor an IPv4 address"],
  ["s3+http://a:s3cret@host", "BUCKET is not the name of a bucket"],
  ["s3+http://a:s3cret@host/Bucket", "BUCKET is not the name of a bucket"],
  ["s3+http://a:s3cret@host/bucket/folder", "BUCKET is not the name of a bucket"],
  ["s3+http://a:s3cret@host/bucket?region=", "R is not the name of a region"],
  ["s3+http://a:s3cret@host/bucket?regoin=a", "only region may follow the bucket"],
  ["s3+http://a:s3cret@host/bucket#a", "only region may follow the bucket"],
  ["s3+http://s3cret@host/bucket", "ACCESS or SECRET is missing"],
  ["s3+http://host/bucket", "ACCESS or SECRET is missing"],
  ["s3+http://a:s3cret%zz@host/bucket", "ACCESS or SECRET is not percent-encoded"],
])("%s: %s", (url, fault) => {
  expect(() => parseS3Url(url)).toThrow(TypeError);
  expect(() => parseS3Url(url)).toThrow(
    `must be s3+http://ACCESS:SECRET@HOST:PORT/BUCKET?region=R or s3+https://…, percent-encoded: ${fault}`,
  );
});
