import { Session } from 'node:inspector';

/** Blocks of our own code that V8 has seen run in this thread. */
export class Coverage {
  #session = new Session();
  #seen = new Set();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Whether a block ran since the last call that never ran before; it counts as seen. */
  isNew() {
    const fresh = this.#take();
    for (const block of fresh) this.#seen.add(block);
    return fresh.length > 0;
  }

  /** As `isNew`, but the blocks stay new. */
  peek() {
    return this.#take().length > 0;
  }

  #take() {
    let scripts = [];
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error) throw error;
      scripts = result;
    });
    const blocks = [];
    for (const { scriptId, url, functions } of scripts) {
      if (!url.includes('/packages/') || url.includes('/node_modules/')) continue;
      for (const { ranges } of functions) {
        for (const { startOffset, endOffset, count } of ranges) {
          // How often, by powers of four: loops are worth exploring.
          const times = count === 0 ? -1 : Math.floor(Math.log2(count) / 2);
          const block = `${scriptId}:${startOffset}:${endOffset}:${Math.min(times, 4)}`;
          if (count > 0 && !this.#seen.has(block)) blocks.push(block);
        }
      }
    }
    return blocks;
  }
}
