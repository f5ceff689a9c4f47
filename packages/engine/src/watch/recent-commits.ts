import type { Commit } from '../format/changes.js';

interface OfCommit {
  readonly commit: Commit;
  /** Of its row in the log. */
  readonly bytes: number;
}

/**
 * What was made of the newest commits, until it is forgotten or there is no room for it. A place for
 * each number and no map: the tables that a map grows out of point to the next one, and a chain of
 * them, once it is old, makes all that follows old too.
 */
export class RecentCommits<Entry extends OfCommit> {
  readonly #places: (Entry | undefined)[];
  #bytes = 0;
  /** The last commit that was forgotten in its turn. */
  #forgotten = 0;

  constructor(
    private readonly most: number,
    private readonly maxBytes: number,
  ) {
    this.#places = Array.from({ length: most }, () => undefined);
  }

  find(seq: number): Entry | undefined {
    const entry = this.#places[seq % this.most];
    return entry?.commit.seq === seq ? entry : undefined;
  }

  keep(entry: Entry): void {
    const place = entry.commit.seq % this.most;
    const before = this.#places[place];
    // Whoever reads far behind must not push out what all others are about to read.
    if (before && before.commit.seq > entry.commit.seq) return;
    if (this.#bytes + entry.bytes > this.maxBytes) this.clear();
    else if (before) this.#bytes -= before.bytes;
    this.#places[place] = entry;
    this.#bytes += entry.bytes;
  }

  /** Forgets the commits up to this one. */
  forgetTo(seq: number): void {
    const last = Math.max(this.#forgotten, seq - this.most);
    for (let next = last + 1; next <= seq; next++) this.#forget(next);
    this.#forgotten = Math.max(this.#forgotten, seq);
  }

  /** Forgets all of them, and that any was forgotten: others may come to bear their numbers. */
  clear(): void {
    this.#places.fill(undefined);
    this.#bytes = 0;
    this.#forgotten = 0;
  }

  #forget(seq: number): void {
    const entry = this.#places[seq % this.most];
    if (!entry || entry.commit.seq > seq) return;
    this.#places[seq % this.most] = undefined;
    this.#bytes -= entry.bytes;
  }
}
