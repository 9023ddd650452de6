import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { maxKeysPerAccount, metadataLimits } from "#common/words/request-bounds.ts";
import { maxJsonDepth, maxJsonMarks } from "#kit/base/json.ts";
import { maxSettingsNames, maxTextBodyMarks } from "#kit/base/settings-body.ts";
import { chunkBounds } from "#kit/edge/connection-bounds.ts";
import { maxPipelinedRequests } from "#kit/edge/pipelining.ts";
import { maxQueryNames, maxQueryParameters } from "#kit/edge/query-bounds.ts";
import { waitingImages } from "#kit/images/limits.ts";
import { fewMarks, fewNames, mediumShare, readingShare } from "#kit/json-reader/index.ts";
import { maxShapes, maxTextBytes } from "#kit/json-reader/read.ts";
import { maxHealthWatches } from "#kit/rpc/health.ts";
import { maxConcurrentStreams, maxRefusedCalls, maxSessions } from "#kit/rpc/server.ts";
import { answerLimits, heldBackMs } from "#kit/upstream/limits.ts";
import { admissionLimits } from "../gateway/admission/limits.ts";
import { signInBodyMs } from "../gateway/console/limits.ts";
import * as edge from "../gateway/limits.ts";
import * as sockets from "../gateway/websocket/limits.ts";
import * as auth from "../services/auth/limits.ts";
import { maxHashesAtOnce, maxOperators } from "../services/auth/operator-limits.ts";
import * as billing from "../services/billing/base/limits.ts";
import * as files from "../services/media/files/limits.ts";
import { storedLimitOf } from "../services/media/files/quota.ts";
import * as media from "../services/media/limits.ts";
import { importShare } from "../services/media/limits.ts";
import { soundsInMemory, speechShare } from "../services/media/speech/limits.ts";
import * as webhooks from "../services/media/webhooks/limits.ts";
import * as text from "../services/text/base/limits.ts";
import { generateLimits } from "../services/upstreams/media/limits.ts";

const kib = 1024;
const mib = 1024 * kib;
const bodies = edge.bodyBounds(edge.defaultMaxBytesInFlight);

/** The code's values for the bounds in the table of docs/operations.md, in its units. */
const inCode: Readonly<Record<string, number>> = {
  "connections of the public port": edge.connectionLimits.total,
  "connections of one address (IPv6: of one /64)": edge.connectionLimits.each,
  "requests of a connection that wait for their answers": maxPipelinedRequests,
  "calls of a gRPC session": maxConcurrentStreams,
  "sessions of the gRPC port": maxSessions,
  "calls without a token on a gRPC session": maxRefusedCalls,
  "watches of gRPC health": maxHealthWatches,
  "WebSockets for responses": sockets.socketBounds.most,
  "WebSockets of one account": sockets.mostOfAccount(sockets.socketBounds.most),
  "WebSockets of one key": sockets.socketBounds.ofKey,
  "responses under way on a WebSocket": sockets.socketBounds.inFlight,
  "requests that wait on a WebSocket": sockets.maxWaiting,
  "lanes of a WebSocket that have a name": sockets.maxLanes,
  "kept conversations of WebSockets": sockets.keptBytesInAll / mib,
  "request line and headers": edge.maxHeaderBytes / kib,
  "parameters of a query": maxQueryParameters,
  "different names of a query's parameters": maxQueryNames,
  "time for the headers": edge.headersTimeoutMs / 1_000,
  "pause within a body": edge.bodyIdleMs / 1_000,
  "time for a body": edge.bodyTotalMs / 60_000,
  "hashes of operators' passwords at once": maxHashesAtOnce,
  "operators with a name": maxOperators,
  "time for the body of a sign-in at the console": signInBodyMs / 1_000,
  "idle connection": edge.keepAliveTimeoutMs / 1_000,
  "a caller that takes nothing of its answer": edge.stalledReaderMs / 1_000,
  "a stream that its caller holds back while another account waits for its place":
    heldBackMs / 1_000,
  "running streams kept for equal requests": text.maxReplayBytesInAll / mib,
  "running streams of one account kept for equal requests": text.maxReplayBytesPerAccount / mib,
  "equal requests that join one in flight": text.maxJoiners,
  "chunks of a chunked body of any size": chunkBounds.spare,
  "body of a text request": edge.bodyLimitsBytes.text / mib,
  "body of an image or video request": edge.bodyLimitsBytes.references / mib,
  "body of a key, of alerts, or of any action in the console": edge.bodyLimitsBytes.settings / kib,
  "names in a body of a key, of alerts, or of any action in the console": maxSettingsNames,
  "names and values beside a draft of the catalog": maxTextBodyMarks,
  "body of any other request": edge.bodyLimitsBytes.other / mib,
  "values and names of a JSON body": maxJsonMarks,
  "text of a JSON body from 32 KiB on": maxTextBytes / mib,
  "shapes of a JSON body's objects": maxShapes,
  "levels of a JSON body": maxJsonDepth,
  "levels of a text request": text.maxJsonDepth,
  "tools of a text request": text.maxTools,
  "images of a text request": text.maxImages,
  "bytes of an image": files.maxImageBytes / mib,
  "pixels of an image": files.maxImagePixels,
  "files of a text request": text.maxFileParts,
  "bytes of the files of a text request": text.maxFileBytes / mib,
  "audio files measured at once": text.measuringShare.places,
  "files of one account that wait to be measured": text.measuringShare.each.waiting,
  "bodies of up to 64 KiB held at once, beside larger ones":
    edge.smallBodyBounds(edge.defaultMaxBytesInFlight).places / mib,
  "bodies held at once": bodies.places / mib,
  "bodies of one account": bodies.each.places / mib,
  "bodies of one account that wait": bodies.each.waiting,
  "large answers worked on at once": text.largeAnswerShare.places,
  "large whole answers in memory": text.answersInMemory.places / mib,
  "large whole answers of one account in memory": text.answersInMemory.each.places / mib,
  "largest whole answer of an upstream": answerLimits.jsonBytes / mib,
  "repeated answers on their way as streams": text.replayShare.places / mib,
  "repeated answers of one account": text.replayShare.each.places / mib,
  "repeated answers of one account that wait": text.replayShare.each.waiting,
  "repeated JSON answers on their way": edge.repeatedShare.places / mib,
  "repeated JSON answers of one account": edge.repeatedShare.each.places / mib,
  "repeated JSON answers of one account that wait": edge.repeatedShare.each.waiting,
  "large JSON bodies read at once": readingShare.places,
  "large JSON bodies of one account that wait": readingShare.each.waiting,
  "names of a small JSON body that is read on the event loop": fewNames,
  "values and names of a small JSON body that is read on the event loop": fewMarks,
  "JSON bodies of up to 1 MiB of one account that wait for their thread": mediumShare.each.waiting,
  "files on their way to callers": edge.downloadShare.places,
  "downloads of one account": edge.downloadShare.each.places,
  "uploads at once": files.uploadShare.places,
  "uploads of one account": files.uploadShare.each.places,
  "speeches at once": speechShare.places,
  "speeches of one account": speechShare.each.places,
  "largest speech": generateLimits.speechBytes / mib,
  "speech in memory": soundsInMemory.places / mib,
  "speech of one account in memory": soundsInMemory.each.places / mib,
  "watches of jobs": media.watchShare.places,
  "watches of jobs of one account": media.watchShare.each.places,
  "references fetched at once": importShare.places,
  "images of one account that wait to be decoded": waitingImages,
  "requests, and jobs, of one account under way": billing.maxOpenHolds,
  "bytes of one account's files": files.defaultQuotaBytes / mib,
  "bytes of one account's files on disk": storedLimitOf(files.defaultQuotaBytes) / mib,
  "kept answers of one account": text.maxKeptBytesPerAccount / mib,
  "one kept answer": text.maxKeptAnswerBytes / mib,
  "metadata of one job, as JSON": metadataLimits.jsonBytes / kib,
  "metadata in one page of jobs": media.maxPageBytes / kib,
  "failed jobs of one account, of each kind": media.maxFailedJobs,
  "request of a failed job that is kept": media.maxFailedRequestBytes / kib,
  "record of a refused submission": media.rejectedKeptMs / 60_000,
  "record of a deleted file": files.goneKeptMs / 60_000,
  "record of a released place in a quota": files.releasedKeptMs / 60_000,
  "jobs of each kind that a process renders itself": media.defaultWorkers,
  "jobs of a kind at one upstream": media.upstreamJobs,
  "jobs of one account at one upstream": media.upstreamJobsEach,
  "generated images, and answers with files in them, in memory":
    generateLimits.imagesInMemory.places / mib,
  "room of a generated image in memory, at least": generateLimits.leastImageRoom / mib,
  "references in memory": generateLimits.referencesInMemory.places / mib,
  "attempts to deliver webhooks at once": webhooks.maxAttempts,
  "attempts to deliver webhooks of one account": webhooks.maxAttemptsEach,
  "attempts to deliver webhooks to one host": webhooks.maxAttemptsToHost,
  "time for an attempt to deliver a webhook": webhooks.attemptTimeoutMs / 1_000,
  "answer to a webhook that is read": webhooks.maxAnswerBytes / kib,
  "time to deliver a webhook": webhooks.deliverForMs / 3_600_000,
  "webhooks of one account, of each type but `job.completed`": webhooks.maxFreeWebhooks,
  "message of a webhook after its end": webhooks.bodyKeptMs / 3_600_000,
  "webhook in the log after its end": webhooks.webhookKeptMs / 86_400_000,
  "requests a minute of a key": auth.defaultKeyRequestsPerMinute,
  "requests a minute of an account": auth.defaultAccountRequestsPerMinute,
  "keys of an account": maxKeysPerAccount,
  "look-ups of keys under way": admissionLimits.maxLookUps,
};

const page = readFileSync(fileURLToPath(new URL("../docs/operations.md", import.meta.url)), "utf8");
const section = /\n## Bounds\n([\s\S]*?)\n## /.exec(page)?.[1] ?? "";
const rows = [...section.matchAll(/^\| (.+) \|$/gm)]
  .map(([, row = ""]) => row.split(" | "))
  .filter(([name = ""]) => name !== "bound" && !name.startsWith("-"));

test("the table of bounds says what is in force", () => {
  const told = rows.map(([name, value = ""]) => [name, Number(value.replaceAll(",", ""))]);
  expect(Object.fromEntries(told)).toEqual(inCode);
  expect(told).toHaveLength(Object.keys(inCode).length);
});

test("each bound has a unit, a reason and what is seen beyond it, by a code that there is", () => {
  const errors = readFileSync(fileURLToPath(new URL("../docs/errors.md", import.meta.url)), "utf8");
  for (const row of rows) {
    expect(row).toHaveLength(6);
    expect(row.every((cell) => cell.trim() !== "")).toBe(true);
    const [, , , , beyond = ""] = row;
    const [, status, code] = /^(\d{3}) `(\w+)`/.exec(beyond) ?? [];
    if (code) expect(errors).toMatch(new RegExp(`\\| ${status} \\| .*\`${code}\``));
  }
});

test("the shares of an account that is not known to pay are those that the reasons name", () => {
  const reasons = new Map(rows.map(([name = "", , , reason = ""]) => [name, reason]));
  const unpaid = {
    "bodies of one account": (bodies.eachUnpaid?.places ?? 0) / mib,
    "bodies of one account that wait": bodies.eachUnpaid?.waiting,
    "downloads of one account": edge.downloadShare.eachUnpaid?.places,
    "uploads of one account": files.uploadShare.eachUnpaid?.places,
    "speeches of one account": speechShare.eachUnpaid?.places,
    "speech of one account in memory": (soundsInMemory.eachUnpaid?.places ?? 0) / mib,
    "watches of jobs of one account": media.watchShare.eachUnpaid?.places,
    "large whole answers of one account in memory":
      (text.answersInMemory.eachUnpaid?.places ?? 0) / mib,
  };
  for (const [name, share] of Object.entries(unpaid)) {
    expect(reasons.get(name)).toMatch(new RegExp(`not known to pay ${share}\\b`));
  }
});

test("a query has room for all keys of an account and 100 models", () => {
  expect(maxQueryParameters).toBeGreaterThanOrEqual(maxKeysPerAccount + 100);
});
