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
