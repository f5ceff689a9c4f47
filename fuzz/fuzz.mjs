import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

/** CPU time of one input. Wall-clock time says little on a busy machine. */
const maxCpuMs = 1_000;
/** An input that waits for something that never comes takes no CPU time. */
const maxWaitMs = 60_000;
const maxHeapMb = 512;
const maxRssBytes = 1.5 * 2 ** 30;
const maxInputBytes = 65_536;

export function targetNames(root) {
  return readdirSync(join(root, 'fuzz', 'targets'))
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => basename(name, '.mjs'));
}

function corpusOf(root, name) {
  const directory = join(root, 'fuzz', 'corpus', name);
  return readdirSync(directory).map((file) => readFileSync(join(directory, file)));
}

/**
 * Runs one target in a thread of its own, and watches it from outside: the input is in shared
 * memory, so that one that blocks the thread can be saved.
 */
export function fuzz({ root, name, seed, seconds, only }) {
  const shared = new SharedArrayBuffer(16 + maxInputBytes);
  const [state, bytes] = [new Int32Array(shared, 0, 4), new Uint8Array(shared, 16)];
  const worker = new Worker(new URL('worker.mjs', import.meta.url), {
    workerData: {
      target: pathToFileURL(join(root, 'fuzz', 'targets', `${name}.mjs`)).href,
      seed,
      seconds,
      shared,
      corpus: only === undefined ? corpusOf(root, name) : [only],
      isReplay: only !== undefined,
    },
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
  });
  const started = performance.now();
  return new Promise((resolve) => {
    let isOver = false;
    const end = (result) => {
      if (isOver) return;
      isOver = true;
      clearInterval(watch);
      void worker.terminate();
      const took = (performance.now() - started) / 1000;
      resolve({ runs: state[0], kept: 0, seconds: took, ...result });
    };
    const fail = (problem) => {
      if (isOver) return;
      const input = Buffer.from(bytes.slice(0, state[1]));
      end({ fault: `${problem}\n  input: ${save(root, name, input)}` });
    };
    const watch = setInterval(watcher(state, fail), 100);
    worker.on('message', (message) => {
      if (message.fault === undefined) end(message);
      else fail(message.fault);
    });
    worker.on('error', (error) => fail(error.stack ?? String(error)));
    worker.on('exit', (code) => fail(`the thread ended with code ${code}`));
  });
}

/** Called again and again; fails when one input takes too long or too much memory. */
function watcher(state, fail) {
  const cpuMs = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };
  let [run, cpu, since] = [-1, 0, 0];
  return () => {
    const now = Atomics.load(state, 0);
    // The thread is not in an input while it loads and measures.
    if (now !== run || Atomics.load(state, 2) === 0) {
      [run, cpu, since] = [now, cpuMs(), performance.now()];
      return;
    }
    if (cpuMs() - cpu > maxCpuMs) fail(`hang: more than ${maxCpuMs} ms of CPU time`);
    else if (performance.now() - since > maxWaitMs) fail(`hang: no end after ${maxWaitMs} ms`);
    else if (process.memoryUsage.rss() > maxRssBytes) fail('memory: more than 1.5 GiB');
  };
}

function save(root, name, input) {
  const directory = join(root, 'fuzz', 'found', name);
  mkdirSync(directory, { recursive: true });
  const id = createHash('sha256').update(input).digest('hex').slice(0, 16);
  const file = join(directory, id);
  writeFileSync(file, input);
  return file;
}
