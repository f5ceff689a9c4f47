import { StorageUnavailable } from '../task-store.js';
import type { Step } from './step.js';

export type Act = <Result>(run: (step: Step) => Result) => Promise<Result>;

interface Group<Item, Answer> {
  asks: (readonly Item[])[];
  items: number;
  answers: Promise<Answer[][]>;
}

/**
 * Calls that come before the writer gets to the first of them are one step: a step has to read and
 * write what its queue counts, and when many callers have one task each that is most of the work.
 */
export class Gathering<Item, Answer> {
  #open: Group<Item, Answer> | undefined;

  constructor(
    private readonly act: Act,
    private readonly mostItems: number,
    private readonly run: (step: Step, ask: readonly Item[]) => Answer[],
  ) {}

  async add(ask: readonly Item[]): Promise<Answer[]> {
    if (ask.length === 0) return [];
    const group = this.#groupFor(ask.length);
    const place = group.asks.push(ask) - 1;
    group.items += ask.length;
    try {
      return (await group.answers)[place]!;
    } catch (error) {
      if (group.asks.length === 1 || error instanceof StorageUnavailable) throw error;
      // One of them is wrong, and the others have nothing to do with it.
      return this.act((step) => this.run(step, ask));
    }
  }

  #groupFor(items: number): Group<Item, Answer> {
    const open = this.#open;
    if (open && open.items + items <= this.mostItems) return open;
    const group: Group<Item, Answer> = { asks: [], items: 0, answers: Promise.resolve([]) };
    group.answers = this.act((step) => {
      // From here on it is what it is, however often it runs.
      if (this.#open === group) this.#open = undefined;
      return group.asks.map((ask) => this.run(step, ask));
    });
    this.#open = group;
    return group;
  }
}
