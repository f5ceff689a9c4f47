import { setImmediate as nextTurn } from 'node:timers/promises';

/** Counts the activity of code under test; while it grows, the code is not idle. */
export interface Activity {
  count: number;
}

interface Work {
  label: string;
  /** Set when the real work is done: hands the result to whoever waits for it. */
  deliver?: () => void;
  settled: Promise<void>;
}

export interface RestLimits {
  /** Turns of the event loop without activity that count as idle. */
  quietTurns: number;
  maxTurns: number;
  /** Real time that registered work may take. */
  workLimitMs: number;
}

/**
 * Detects when code under test only waits for virtual time.
 *
 * A turn of the event loop starts only after every promise chain has run dry, so code that waits
 * for nothing but virtual timers is at rest after one turn; code that takes turns of its own
 * shows by its activity that it is not. Real work, such as a disk write, ends when it likes and
 * has to be registered: its results are held back until all of it is done, and are then handed
 * out in the order of registration, so that the outcome does not depend on the disk.
 */
export class Rest {
  #work: Work[] = [];

  constructor(
    private readonly activity: Activity,
    private readonly limits: RestLimits,
  ) {}

  register<T>(promise: Promise<T>, label: string): Promise<T> {
    this.activity.count++;
    return new Promise<T>((resolve, reject) => {
      const work: Work = {
        label,
        settled: promise.then(
          (value) => void (work.deliver = () => resolve(value)),
          (error: unknown) => void (work.deliver = () => reject(error)),
        ),
      };
      this.#work.push(work);
    });
  }

  async settle(): Promise<void> {
    for (;;) {
      await this.#quiet();
      if (this.#work.length === 0) return;
      await this.#workDone();
      this.#work.shift()!.deliver!();
    }
  }

  async #quiet(): Promise<void> {
    let quiet = 0;
    for (let turns = 0; quiet < this.limits.quietTurns; turns++) {
      if (turns > this.limits.maxTurns) {
        throw new Error(`the code is still active after ${this.limits.maxTurns} turns`);
      }
      const before = this.activity.count;
      await nextTurn();
      quiet = this.activity.count === before ? quiet + 1 : 0;
    }
  }

  async #workDone(): Promise<void> {
    const open = this.#work.filter((work) => !work.deliver);
    if (open.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.#stuck()), this.limits.workLimitMs);
    });
    try {
      await Promise.race([Promise.all(open.map((work) => work.settled)), tooLong]);
    } finally {
      clearTimeout(timer);
    }
  }

  #stuck(): Error {
    const labels = this.#work.filter((work) => !work.deliver).map((work) => work.label);
    return new Error(
      `registered work does not end: ${labels.join(', ')}; ` +
        'register only real work, never what waits for virtual time or for other registered work',
    );
  }
}
