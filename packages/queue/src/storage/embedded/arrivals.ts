/** The queues that have inserts on their way to the disk, where no reader sees them yet. */
export class Arrivals {
  readonly #counts = new Map<string, number>();

  begin(queues: Iterable<string>): void {
    for (const queue of queues) this.#counts.set(queue, (this.#counts.get(queue) ?? 0) + 1);
  }

  end(queues: Iterable<string>): void {
    for (const queue of queues) {
      const left = this.#counts.get(queue)! - 1;
      if (left > 0) this.#counts.set(queue, left);
      else this.#counts.delete(queue);
    }
  }

  at(queue: string): boolean {
    return this.#counts.has(queue);
  }
}
