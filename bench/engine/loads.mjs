/**
 * What is done to an engine. Each load gets the engine (see engines/), its options, and the
 * engine's module; it returns what it measured, and throws when the engine gave a wrong answer.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { cityOf, nameOf, person, task } from './documents.mjs';

const sampleFile = 'sample-ids.json';
const sampleEvery = 16;
const loadBatch = 1_000;
const batchesInFlight = 2;
const turnLength = 64;
const findLimit = 100;

let made = 0;
const sample = [];

/** Single durable inserts by so many callers, each waiting for its own. */
async function writes(engine, { table, callers, windowMs }) {
  globalThis.gc();
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const found = await callersFor(windowMs, callers, () => engine.insert(table, person(made++)));
  loop.disable();
  return { ...found, loopP99Ms: loop.percentile(99) / 1e6 };
}

/** Fills a part of `people` in durable batches, two under way at a time. */
async function bulk(engine, { from, to }) {
  let next = from;
  const meter = startMeter();
  const loader = async () => {
    while (next < to) {
      const first = next;
      next = Math.min(first + loadBatch, to);
      const docs = Array.from({ length: next - first }, (_, i) => person(first + i));
      const stored = await engine.load('people', docs);
      if (stored.length !== docs.length) throw new Error(`${stored.length} of a batch were stored`);
      for (let i = 0; i < docs.length; i += sampleEvery) sample.push([first + i, stored[i]]);
    }
  };
  await Promise.all(Array.from({ length: batchesInFlight }, loader));
  return meter(to - from);
}

/** Keeps some ids of the bulk load for the reads of another process. */
async function saveSample(_engine, { directory }) {
  writeFileSync(join(directory, sampleFile), JSON.stringify(sample));
}

async function pointReads(engine, { windowMs, directory }, { parallelReads = 1 }) {
  const ids = JSON.parse(readFileSync(join(directory, sampleFile), 'utf8'));
  let at = 0;
  return callersFor(windowMs, parallelReads, async () => {
    // A stride that meets every sampled id once before any comes again.
    at = (at + 7_919) % ids.length;
    const [number, id] = ids[at];
    const found = await engine.get(id);
    if (found?.name !== nameOf(number)) throw new Error(`record ${number} is not as stored`);
  });
}

/** The first hundred of one city, by its index. */
async function finds(engine, { windowMs }, { parallelReads = 1 }) {
  let at = 0;
  return callersFor(windowMs, parallelReads, async () => {
    const city = cityOf(at++);
    const found = await engine.find(city, findLimit);
    if (found.length !== findLimit || found.some((each) => each.city !== city)) {
      throw new Error(`find by city gave ${found.length} records, or some of another city`);
    }
  });
}

async function filter(engine, { records, age }) {
  const meter = startMeter();
  const matches = await engine.filter(age);
  return { ...meter(records), answer: matches };
}

async function aggregate(engine, { records }) {
  const meter = startMeter();
  const groups = await engine.aggregate();
  const found = meter(records);
  const sorted = groups.toSorted((a, b) => a.age - b.age);
  const answer = sorted.map(({ age, count, average }) =>
    [age, count, average.toFixed(4)].join(' '),
  );
  return { ...found, answer: answer.join('; ') };
}

/** Claims the oldest due tasks and completes them, a batch at a time, by several workers. */
async function queue(engine, { tasks, workers, batch }) {
  const before = await engine.countDone();
  const start = Date.now() - tasks;
  for (let from = 0; from < tasks; from += loadBatch) {
    const docs = [];
    for (let i = from; i < Math.min(from + loadBatch, tasks); i++) docs.push(task(i, start));
    await engine.load('tasks', docs);
  }
  globalThis.gc();
  const meter = startMeter();
  const worker = async () => {
    for (;;) {
      const claimed = await engine.claim(Date.now(), batch);
      if (claimed.length === 0) return;
      if (claimed.some(({ payload }) => payload[0] !== 'welcome')) throw new Error('a torn task');
      await engine.complete(claimed, Date.now());
      await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  const found = meter(tasks);
  const done = (await engine.countDone()) - before;
  if (done !== tasks) throw new Error(`${done} of ${tasks} tasks are done`);
  return found;
}

/** After a collection of garbage: what is left is held. */
async function memory() {
  globalThis.gc();
  await nextTurn();
  globalThis.gc();
  const { heapUsed, rss } = process.memoryUsage();
  return { heapMb: heapUsed / 2 ** 20, rssMb: rss / 2 ** 20 };
}

/** Runs `act` in so many loops for so long. Lets the event loop turn, as a server would. */
async function callersFor(windowMs, callers, act) {
  let count = 0;
  const meter = startMeter();
  const stopAt = performance.now() + windowMs;
  const caller = async () => {
    for (let i = 1; performance.now() < stopAt; i++) {
      await act();
      count++;
      if (i % turnLength === 0) await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return meter(count);
}

/** From now on: operations per second, and the processor time of this process for each. */
function startMeter() {
  const started = performance.now();
  const used = process.cpuUsage();
  return (count) => {
    const { user, system } = process.cpuUsage(used);
    const seconds = (performance.now() - started) / 1_000;
    return { perSecond: count / seconds, seconds, cpuMicros: (user + system) / count };
  };
}

export const loads = {
  writes,
  bulk,
  saveSample,
  pointReads,
  finds,
  filter,
  aggregate,
  queue,
  memory,
};
