import type { DaemonSchema } from '@millrace/contract/daemon';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { messageOf, Refusal } from '@millrace/kit/errors';
import { isAbort } from '../base/exchange.js';

export type Session = DaemonSchema<'Session'>;
export type Question = DaemonSchema<'Question'>;
export type Registry = DaemonSchema<'Registry'>;
export type Note = DaemonSchema<'InboxNote'>;
export type SpendRollup = DaemonSchema<'SpendRollup'>;
export type Queue = QueueSchema<'QueueList'>[number];

/** What the screen shows. Undefined: not read yet. */
export interface Parts {
  readonly sessions: readonly Session[];
  /** The open ones. */
  readonly questions: readonly Question[];
  readonly queues: readonly Queue[];
  readonly registry: Registry;
  readonly spend: SpendRollup;
  readonly notes: readonly Note[];
}

export type PartName = keyof Parts;

export interface Snapshot {
  readonly data: Partial<Parts>;
  /** Why the last read of a part failed; what was read before is still shown. */
  readonly errors: Partial<Record<PartName, string>>;
  readonly isLive: boolean;
  /** Why the events of the daemon stopped. */
  readonly lost: string | undefined;
}

export type Readers = { readonly [Name in PartName]: () => Promise<Parts[Name]> };

/** Minimum time between two reads of a part, however many events name it. */
const pauseMs = 250;

/** The latest data of every part, for React's useSyncExternalStore. */
export class LiveData {
  #snapshot: Snapshot = { data: {}, errors: {}, isLive: false, lost: undefined };
  readonly #listeners = new Set<() => void>();
  readonly #reading = new Map<PartName, { again: boolean }>();

  constructor(
    private readonly readers: Readers,
    private readonly clock: Pick<typeof systemClock, 'after'> = systemClock,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly snapshot = (): Snapshot => this.#snapshot;

  connected(): void {
    this.#set({ ...this.#snapshot, isLive: true, lost: undefined });
  }

  disconnected(reason: string): void {
    this.#set({ ...this.#snapshot, isLive: false, lost: reason });
  }

  readAll(): void {
    for (const name of Object.keys(this.readers) as PartName[]) this.read(name);
  }

  /** Applies one event of the daemon: reads again what it has changed. */
  apply(type: string): void {
    if (type === 'stream.reset') this.readAll();
    for (const name of changedBy[type.split('.')[0] ?? ''] ?? []) this.read(name);
  }

  /** Reads a part again; a part that is being read is read once more after that. */
  read(name: PartName): void {
    const running = this.#reading.get(name);
    if (running) {
      running.again = true;
      return;
    }
    const state = { again: false };
    this.#reading.set(name, state);
    void this.#readOnce(name).then(() => {
      this.clock.after(pauseMs, () => {
        this.#reading.delete(name);
        if (state.again) this.read(name);
      });
    });
  }

  async #readOnce(name: PartName): Promise<void> {
    try {
      const value = await this.readers[name]();
      const { [name]: _resolved, ...errors } = this.#snapshot.errors;
      this.#set({ ...this.#snapshot, data: { ...this.#snapshot.data, [name]: value }, errors });
    } catch (error) {
      // The screen is being closed.
      if (isAbort(error)) return;
      const text = error instanceof Refusal ? error.detail : messageOf(error);
      this.#set({ ...this.#snapshot, errors: { ...this.#snapshot.errors, [name]: text } });
    }
  }

  #set(snapshot: Snapshot): void {
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) listener();
  }
}

const changedBy: Readonly<Record<string, readonly PartName[]>> = {
  session: ['sessions', 'questions'],
  question: ['questions'],
  backend: ['registry'],
  settings: ['registry'],
  spend: ['spend'],
  note: ['notes'],
};
