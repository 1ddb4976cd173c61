import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { ApplicationEvent, Engine, EventOptions } from "../../core/index.ts";
import { EventFeeds } from "../../server/http/event-feeds.ts";

/** Logs of applications in memory, and how often each event was read. */
class Logs {
  readonly reads = new Map<string, number>();
  readonly #logs = new Map<string, ApplicationEvent[]>();
  readonly #failed = new AbortController();
  #added = Promise.withResolvers<void>();

  readonly feeds = new EventFeeds({
    events: { stream: (...asked) => this.#stream(...asked) } as Engine["events"],
  });

  add(applicationId: string, count: number): void {
    const log = this.#of(applicationId);
    for (let i = 0; i < count; i++)
      log.push({
        sequence: log.length + 1,
        type: "asset.enabled",
        createdAt: 0,
        data: { assetId: `asset of ${applicationId}` },
      });
    this.#added.resolve();
    this.#added = Promise.withResolvers();
  }

  fail(error: Error): void {
    this.#failed.abort(error);
    this.#added.resolve();
  }

  #of(applicationId: string): ApplicationEvent[] {
    const log = this.#logs.get(applicationId) ?? [];
    this.#logs.set(applicationId, log);
    return log;
  }

  async *#stream(applicationId: string, { after = 0, follow = false, signal }: EventOptions = {}) {
    const log = this.#of(applicationId);
    const ended = new Promise<void>((resolve) =>
      signal?.addEventListener("abort", () => resolve(), { once: true }),
    );
    for (let known = after; ; ) {
      signal?.throwIfAborted();
      this.#failed.signal.throwIfAborted();
      const event = log[known];
      if (event !== undefined) {
        const name = `${applicationId} ${event.sequence}`;
        this.reads.set(name, (this.reads.get(name) ?? 0) + 1);
        yield event;
        known += 1;
      } else if (follow) await Promise.race([this.#added.promise, ended]);
      else return;
    }
  }
}

class Follower {
  readonly stop = new AbortController();
  writes = 0;
  readonly sequences: number[] = [];
  readonly #frames: AsyncGenerator<Buffer>;

  constructor({ feeds }: Logs, applicationId = "one", after = 0) {
    this.#frames = feeds.follow(applicationId, after, this.stop.signal);
  }

  /** Takes frames until the event of a sequence. */
  async until(last: number): Promise<this> {
    while (this.sequences.at(-1) !== last) {
      const { value } = await this.#frames.next();
      if (!Buffer.isBuffer(value)) throw new Error("the feed has ended");
      this.writes += 1;
      for (const [, sequence] of `${value}`.matchAll(/^id: (\d+)$/gm))
        this.sequences.push(Number(sequence));
    }
    return this;
  }

  isWhole(after = 0): void {
    expect(this.sequences).toEqual(this.sequences.map((_, i) => after + i + 1));
  }
}

describe("a feed of events", () => {
  test("reads each new event once, for many followers", async () => {
    const logs = new Logs();
    const followers = Array.from({ length: 300 }, () => new Follower(logs));
    logs.add("one", 1);
    await Promise.all(followers.map((follower) => follower.until(1)));
    const heard = followers.map((follower) => follower.until(101));
    await sleep(10);
    logs.add("one", 100);
    for (const follower of await Promise.all(heard)) {
      follower.isWhole();
      expect(follower.writes).toBe(2);
    }
    for (let sequence = 2; sequence <= 101; sequence++)
      expect(logs.reads.get(`one ${sequence}`)).toBe(1);
  });

  test("keeps no more for a follower that does not read, who reads the log again", async () => {
    const logs = new Logs();
    const [slow, quick] = [new Follower(logs), new Follower(logs)];
    logs.add("one", 1);
    await Promise.all([slow.until(1), quick.until(1)]);
    for (let i = 0; i < 20; i++) {
      const heard = quick.until(1 + 100 * (i + 1));
      await sleep(1);
      logs.add("one", 100);
      await heard;
    }
    expect(logs.reads.get("one 2")).toBe(1);
    (await slow.until(2_001)).isWhole();
    quick.isWhole();
    expect(logs.reads.get("one 2")).toBe(2);
    const heard = [slow, quick].map((follower) => follower.until(2_002));
    logs.add("one", 1);
    for (const follower of await Promise.all(heard)) follower.isWhole();
  });

  test("tells a follower that starts later what the others have, from where it asks", async () => {
    const logs = new Logs();
    logs.add("one", 500);
    const first = new Follower(logs);
    await first.until(500);
    const later = new Follower(logs, "one", 490);
    const heard = [first, later].map((follower) => follower.until(510));
    await sleep(1);
    logs.add("one", 10);
    await Promise.all(heard);
    first.isWhole();
    later.isWhole(490);
  });

  test("keeps nothing for the places from which followers have come back", async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    // A thread frees the memory of arrays after the collection.
    const held = async () => {
      collect();
      await sleep(100);
      collect();
      return process.memoryUsage().arrayBuffers;
    };
    const logs = new Logs();
    const followers = Array.from({ length: 16 }, () => new Follower(logs));
    logs.add("one", 1);
    await Promise.all(followers.map((follower) => follower.until(1)));
    const heard = followers.map((follower) => follower.until(1_001));
    await sleep(1);
    logs.add("one", 1_000);
    await Promise.all(heard);
    const before = await held();
    for (let after = 1; after <= 500; after++) {
      const back = await new Follower(logs, "one", after).until(1_001);
      back.isWhole(after);
      back.stop.abort();
    }
    expect(logs.reads.get("one 501")).toBe(1);
    expect((await held()) - before).toBeLessThan(2 * 1024 * 1024);
  });

  test("is an application's own", async () => {
    const logs = new Logs();
    logs.add("one", 3);
    logs.add("two", 5);
    const [one, two] = [new Follower(logs), new Follower(logs, "two")];
    await Promise.all([one.until(3), two.until(5)]);
    const frames = logs.feeds.follow("two", 5, two.stop.signal);
    const next = frames.next();
    const heard = one.until(4);
    logs.add("one", 1);
    await heard;
    logs.add("two", 1);
    expect(`${(await next).value}`).toContain("asset of two");
  });

  test("ends with the signal's reason, and with a failure of the log for all", async () => {
    const logs = new Logs();
    const followers = [new Follower(logs), new Follower(logs)];
    logs.add("one", 1);
    await Promise.all(followers.map((follower) => follower.until(1)));
    const [left, stays] = followers.map((follower) => follower.until(2));
    followers[0]?.stop.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    logs.fail(new Error("the disk is gone"));
    await expect(stays).rejects.toThrow("the disk is gone");
    await expect(new Follower(logs).until(2)).rejects.toThrow("the disk is gone");
  });
});
