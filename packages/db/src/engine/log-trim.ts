import type { Timer } from '@millrace/kit/clock';
import { commitTime } from './changes.js';
import type { Core } from './core.js';
import { seqKey, seqOfKey } from './storage/keys.js';

export interface LogRetention {
  ageMs: number;
  bytes: number;
}

export const defaultRetention: LogRetention = { ageMs: 24 * 3_600_000, bytes: 2 ** 30 };

const rowsPerStep = 1_000;
const trimEveryMs = 30_000;

/** Keeps the change log within its limits. */
export class LogTrimmer {
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    private readonly core: Core,
    private readonly retention: LogRetention,
  ) {
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Removes what is too old or too much; and, when asked, everything before `beforeSeq`. */
  async trim(beforeSeq = 0): Promise<void> {
    while (!this.#stopped && (await this.core.writer.submit(() => this.#trimSome(beforeSeq))));
  }

  /** The oldest commit that `trim` would leave. */
  async preview(beforeSeq = 0): Promise<number> {
    const oldest = this.core.clock.now() - this.retention.ageMs;
    let { oldestSeq, logBytes } = this.core.durable;
    for (let seen = rowsPerStep; seen === rowsPerStep; await nextTurn()) {
      seen = 0;
      const step = { start: seqKey(oldestSeq), limit: rowsPerStep };
      for (const { key, value } of this.core.tables.range('log', step)) {
        const seq = seqOfKey(key);
        const tooOld = commitTime(value) < oldest;
        if (!tooOld && logBytes <= this.retention.bytes && seq >= beforeSeq) break;
        logBytes -= value.length;
        oldestSeq = seq + 1;
        seen++;
      }
    }
    return oldestSeq;
  }

  #schedule(): void {
    this.#timer = this.core.clock.after(trimEveryMs, () => {
      this.trim()
        .catch((error: unknown) => this.core.log.error({ err: error }, 'Log trim failed'))
        .finally(() => {
          if (!this.#stopped) this.#schedule();
        });
    });
  }

  /** One step. True when there may be more to remove. */
  #trimSome(beforeSeq: number): boolean {
    const { core } = this;
    const { writer } = core;
    const oldest = core.clock.now() - this.retention.ageMs;
    let { oldestSeq, oldestChain, logBytes } = core.state;
    let removed = 0;
    for (const { key, value } of writer.range('log', { start: seqKey(0), limit: rowsPerStep })) {
      const seq = seqOfKey(key);
      const tooOld = commitTime(value) < oldest;
      if (!tooOld && logBytes <= this.retention.bytes && seq >= beforeSeq) break;
      writer.remove('log', key);
      logBytes -= value.length;
      oldestSeq = seq + 1;
      oldestChain = { high: value.readUInt32BE(10), low: value.readUInt32BE(14) };
      removed++;
    }
    if (removed === 0) return false;
    writer.state = { ...core.state, oldestSeq, oldestChain, logBytes };
    return removed === rowsPerStep;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
