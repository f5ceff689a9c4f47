import type { Clock, Timer } from '@millrace/kit/clock';

interface Expiring {
  readonly deadline: number;
}

/** Fails calls at their deadlines with one timer for all: a timer per call is far slower. */
export class Deadlines<Call extends Expiring> {
  readonly #calls = new Set<Call>();
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly expire: (call: Call) => void,
  ) {}

  add(call: Call): void {
    if (call.deadline === Infinity) return;
    this.#calls.add(call);
    if (call.deadline < this.#timerAt) this.#arm(call.deadline);
  }

  delete(call: Call): void {
    this.#calls.delete(call);
  }

  close(): void {
    this.#timer?.cancel();
    this.#calls.clear();
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.clock.after(at - this.clock.now(), () => this.#run());
  }

  #run(): void {
    const now = this.clock.now();
    this.#timerAt = Infinity;
    let next = Infinity;
    for (const call of this.#calls) {
      if (call.deadline > now) next = Math.min(next, call.deadline);
      else {
        this.#calls.delete(call);
        this.expire(call);
      }
    }
    if (next < this.#timerAt) this.#arm(next);
  }
}
