import { parentPort, workerData } from 'node:worker_threads';
import { Coverage } from './coverage.mjs';
import { mutator } from './mutate.mjs';

const { target: address, seed, seconds, shared, corpus, isReplay } = workerData;
const state = new Int32Array(shared, 0, 4);
const bytes = new Uint8Array(shared, 16);
const maxKept = 4_000;
let batchSize = 16;
let measureMs = 0;

const target = await import(address);
let hasFailed = false;
process.on('uncaughtException', (error) => report(error));
process.on('unhandledRejection', (error) => report(error));

function report(error) {
  if (hasFailed) return;
  hasFailed = true;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  parentPort.postMessage({ fault: text }, []);
}

/** Runs one input; what the target refuses as it should is not a fault. */
async function run(input) {
  bytes.set(input);
  state[1] = input.length;
  Atomics.add(state, 0, 1);
  Atomics.store(state, 2, 1);
  try {
    const outcome = target.run(Buffer.from(input));
    if (outcome instanceof Promise) await outcome;
    // Rejections that nobody handles are reported when the event loop turns.
    await new Promise(setImmediate);
  } catch (error) {
    if (!target.isExpected?.(error)) report(error);
  } finally {
    Atomics.store(state, 2, 0);
  }
}

await target.prepare?.();
const coverage = new Coverage();
let kept = [];
for (const input of corpus) {
  if (hasFailed) break;
  await run(input);
  coverage.isNew();
  kept.push(input);
}
const mutate = mutator(seed, target.dictionary ?? [], bytes.length);
const until = performance.now() + seconds * 1000;
while (!isReplay && !hasFailed && performance.now() < until) await runBatch();
await target.end?.();
if (!hasFailed) parentPort.postMessage({ runs: state[0], kept: kept.length }, []);

/**
 * Measuring takes milliseconds, so that it is done for many inputs at once: as many as run in the
 * same time.
 */
async function runBatch() {
  const batch = Array.from({ length: batchSize }, () => mutate(kept));
  const begun = performance.now();
  const isNew = await runAll(batch);
  const measured = performance.now();
  if (isNew) await keepNew(batch);
  else if (measureMs > measured - begun - measureMs) batchSize = Math.min(2 * batchSize, 4_096);
  // The oldest mutations make room; the corpus stays.
  if (kept.length > maxKept) kept = [...kept.slice(0, corpus.length), ...kept.slice(-maxKept / 2)];
}

/** Runs inputs; answers whether something new ran. */
async function runAll(inputs) {
  for (const input of inputs) {
    if (hasFailed) return false;
    await run(input);
  }
  const begun = performance.now();
  const isNew = coverage.peek();
  measureMs = performance.now() - begun;
  return isNew;
}

/** Finds the inputs that run something new, by halves. */
async function keepNew(inputs) {
  if (inputs.length > 1) {
    const half = inputs.length >> 1;
    for (const part of [inputs.slice(0, half), inputs.slice(half)]) {
      if (await runAll(part)) await keepNew(part);
    }
    return;
  }
  await run(inputs[0]);
  if (coverage.isNew()) kept.push(inputs[0]);
}
