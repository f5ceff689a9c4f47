import { StorageUnavailable } from '../task-store.js';
import type { Step } from './step.js';

export type Act = <Result>(run: (step: Step) => Result) => Promise<Result>;

interface Group<Item, Answer> {
  asks: (readonly Item[])[];
  items: number;
  /** The queues whose work was hinted at. */
  hinted: Set<string>;
  /** What runs behind the asks, in the same step. */
  riders: ((step: Step) => unknown)[];
  outcome: Promise<{ answers: Answer[][]; rides: unknown[] }>;
}

/** With more items than this a step is long enough: riders have one of their own. */
const mostItemsWithRiders = 128;

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
    /** Called for a queue that will have work, when the writer has that in its queue. */
    private readonly hint: (queue: string) => void = () => undefined,
  ) {}

  async add(ask: readonly Item[], queues: Iterable<string> = []): Promise<Answer[]> {
    if (ask.length === 0) return [];
    const group = this.#groupFor(ask.length);
    const place = group.asks.push(ask) - 1;
    group.items += ask.length;
    for (const queue of queues) {
      // Once for each step: whoever heard of it claims behind all that the step inserts.
      if (group.hinted.has(queue)) continue;
      group.hinted.add(queue);
      this.hint(queue);
    }
    try {
      return (await group.outcome).answers[place]!;
    } catch (error) {
      if (isAlone(group) || error instanceof StorageUnavailable) throw error;
      // One of them is wrong, and the others have nothing to do with it.
      const answers = this.act((step) => this.run(step, ask));
      for (const queue of queues) this.hint(queue);
      return answers;
    }
  }

  /** Runs a small act behind the calls that wait, in their step; alone when none do. */
  async join<Result>(ride: (step: Step) => Result): Promise<Result> {
    const group = this.#open;
    if (!group || group.items > mostItemsWithRiders) return this.act(ride);
    const place = group.riders.push(ride) - 1;
    try {
      return (await group.outcome).rides[place] as Result;
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error;
      return this.act(ride);
    }
  }

  #groupFor(items: number): Group<Item, Answer> {
    const open = this.#open;
    if (open && open.items + items <= this.mostItems) return open;
    const group: Group<Item, Answer> = {
      asks: [],
      items: 0,
      hinted: new Set(),
      riders: [],
      outcome: Promise.resolve({ answers: [], rides: [] }),
    };
    group.outcome = this.act((step) => {
      // From here on it is what it is, however often it runs.
      if (this.#open === group) this.#open = undefined;
      const answers = group.asks.map((ask) => this.run(step, ask));
      return { answers, rides: group.riders.map((ride) => ride(step)) };
    });
    this.#open = group;
    return group;
  }
}

function isAlone({ asks, riders }: Group<unknown, unknown>): boolean {
  return asks.length === 1 && riders.length === 0;
}
