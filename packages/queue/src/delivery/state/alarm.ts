import type { Clock, Timer } from '@millrace/kit/clock';

/** Rings once, at the earliest of the requested times. */
export class Alarm {
  #timer: Timer | undefined;
  #at = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly ring: () => void,
  ) {}

  ringIn(delayMs: number): void {
    const at = this.clock.monotonic() + Math.max(0, delayMs);
    if (at >= this.#at) return;
    this.#timer?.cancel();
    this.#at = at;
    this.#timer = this.clock.after(delayMs, () => {
      this.cancel();
      this.ring();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#at = Infinity;
  }
}
