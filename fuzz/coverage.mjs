import { Session } from 'node:inspector';

/**
 * Blocks of our own code that V8 has seen run in this thread. What counts is what never ran: where
 * blocks begin and end depends on how often they ran, and that is a sum over many inputs.
 */
export class Coverage {
  #session = new Session();
  /** For each function that ran, the ranges that never did. */
  #missing = new Map();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Whether something ran since the last call that never ran before; it counts as seen. */
  isNew() {
    const fresh = this.#take();
    for (const [name, ranges] of fresh) this.#missing.set(name, ranges);
    return fresh.size > 0;
  }

  /** As `isNew`, but what ran stays new. */
  peek() {
    return this.#take().size > 0;
  }

  #take() {
    let scripts = [];
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error) throw error;
      scripts = result;
    });
    const fresh = new Map();
    for (const { scriptId, url, functions } of scripts) {
      if (!url.includes('/packages/') || url.includes('/node_modules/')) continue;
      for (const { ranges } of functions) {
        if (ranges[0].count === 0) continue;
        const name = `${scriptId}:${ranges[0].startOffset}:${ranges[0].endOffset}`;
        const idle = ranges
          .filter(({ count }) => count === 0)
          .map(({ startOffset, endOffset }) => [startOffset, endOffset]);
        const before = this.#missing.get(name);
        const now = before === undefined ? idle : common(before, idle);
        if (before === undefined || length(now) < length(before)) fresh.set(name, now);
      }
    }
    return fresh;
  }
}

/** What is in a range of both lists. */
function common(some, others) {
  return some.flatMap(([start, end]) =>
    others
      .map(([from, to]) => [Math.max(start, from), Math.min(end, to)])
      .filter(([from, to]) => from < to),
  );
}

function length(ranges) {
  return ranges.reduce((sum, [start, end]) => sum + end - start, 0);
}
