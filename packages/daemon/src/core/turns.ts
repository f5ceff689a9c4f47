/** Lets work that concerns the same thing happen one after the other, in the order it came. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Is work under way, or waiting? */
  has(key: string): boolean {
    return this.#last.has(key);
  }

  async in<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}

/**
 * Coalesces runs of slow work. A call during a run waits for the next run, because the current one
 * may have missed the caller's change; all waiting callers share that next run.
 */
export class SharedRuns<Result> {
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  constructor(private readonly work: () => Promise<Result>) {}

  run(): Promise<Result> {
    // Also in the moment between the end of a run and the start of the next one.
    if (this.#next) return this.#next;
    if (!this.#running) return this.#start();
    return (this.#next = this.#running.then(
      () => this.#start(),
      () => this.#start(),
    ));
  }

  #start(): Promise<Result> {
    this.#next = undefined;
    const run = this.work().finally(() => {
      if (this.#running === run) this.#running = undefined;
    });
    this.#running = run;
    return run;
  }
}

/** Runs a check now and after every change, until it returns something. */
export async function untilFound<Result>(
  { onChange, signal }: { onChange: (wake: () => void) => () => void; signal: AbortSignal },
  check: () => Promise<Result | undefined>,
): Promise<Result> {
  let wake = () => {};
  const onEvent = () => wake();
  const unsubscribe = onChange(onEvent);
  signal.addEventListener('abort', onEvent);
  try {
    for (;;) {
      const changed = new Promise<void>((resolve) => (wake = resolve));
      signal.throwIfAborted();
      const found = await check();
      if (found !== undefined) return found;
      await changed;
    }
  } finally {
    unsubscribe();
    signal.removeEventListener('abort', onEvent);
  }
}

type About = Readonly<Record<string, unknown>>;

/** Background work that must finish before the store is closed. */
export class BackgroundTasks {
  readonly #underWay = new Set<Promise<void>>();
  /** Running tasks by name; `again` when another run is pending. */
  readonly #named = new Map<string, 'once' | 'again'>();
  #isClosed = false;

  constructor(private readonly onFailure: (error: unknown, about: About) => void) {}

  get isClosed(): boolean {
    return this.#isClosed;
  }

  run(about: About, task: () => Promise<void>): void {
    if (this.#isClosed) return;
    const running = this.#guarded(about, task).finally(() => this.#underWay.delete(running));
    this.#underWay.add(running);
  }

  /** Runs one task per name at a time; calls during a run are coalesced into one more run. */
  runLatest(name: string, about: About, task: () => Promise<void>): void {
    if (this.#named.has(name)) {
      this.#named.set(name, 'again');
      return;
    }
    this.run(about, async () => {
      do {
        this.#named.set(name, 'once');
        await this.#guarded(about, task);
      } while (this.#named.get(name) === 'again' && !this.#isClosed);
      this.#named.delete(name);
    });
  }

  /** Accepts no more tasks, and waits for running ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #guarded(about: About, task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      // A failure caused by shutdown is retried at the next start.
      if (!this.#isClosed) this.onFailure(error, about);
    }
  }
}
