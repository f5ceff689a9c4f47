type About = Readonly<Record<string, unknown>>;

/** Work that nobody waits for, but which must be over before the store is closed. */
export class BackgroundTasks {
  readonly #underWay = new Set<Promise<void>>();
  /** By name: one is under way, and `again` when another is wanted after it. */
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

  /** One of a name at a time; however often it is asked for meanwhile, it runs once more. */
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

  /** Takes no more, and waits for what is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #guarded(about: About, task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      // What breaks off because we stop is found as it was by the next start.
      if (!this.#isClosed) this.onFailure(error, about);
    }
  }
}
