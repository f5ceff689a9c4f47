import type { Commit } from '../changes.js';
import type { WatchMessage } from './message.js';

// Watches that share stand close together: the slow ones make their messages themselves.
const mostKept = 256;
const mostKeptBytes = 512 * 1024;

interface Kept<Shown> {
  readonly commit: Commit;
  readonly bytes: number;
  /** Undefined: the commit has nothing to show. */
  readonly message: WatchMessage<Shown> | undefined;
}

/** What watches of the same look show of the newest commits: made by the first, sent by all. */
export class SharedMessages<Shown> {
  /** How many watches have this look. */
  users = 0;
  readonly #kept = new Map<number, Kept<Shown>>();
  #keptBytes = 0;

  /** What was made of this very commit: after a fail-over another one may bear its number. */
  find(commit: Commit): Kept<Shown> | undefined {
    const kept = this.#kept.get(commit.seq);
    return kept?.commit === commit ? kept : undefined;
  }

  keep(commit: Commit, bytes: number, message: WatchMessage<Shown> | undefined): void {
    if (this.users < 2 || bytes > mostKeptBytes / 2) return;
    const before = this.#kept.get(commit.seq);
    if (before) this.#forget(commit.seq, before);
    this.#kept.set(commit.seq, { commit, bytes, message });
    this.#keptBytes += bytes;
    for (const [seq, oldest] of this.#kept) {
      if (this.#kept.size <= mostKept && this.#keptBytes <= mostKeptBytes) return;
      this.#forget(seq, oldest);
    }
  }

  #forget(seq: number, kept: Kept<Shown>): void {
    this.#kept.delete(seq);
    this.#keptBytes -= kept.bytes;
  }
}
