/**
 * Lets callers share runs of slow work. Whoever asks while a run is under way gets the next one,
 * since the present one may already have passed what the caller wants seen; all who wait for the
 * next one share it. So there are never more than two, however many ask.
 */
export class SharedRuns<Result> {
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  constructor(private readonly work: () => Promise<Result>) {}

  run(): Promise<Result> {
    if (!this.#running) return this.#start();
    return (this.#next ??= this.#running.then(
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
