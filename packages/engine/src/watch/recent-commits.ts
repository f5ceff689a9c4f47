import type { Commit } from '../format/changes.js';

interface OfCommit {
  readonly commit: Commit;
  /** Size of its row in the log. */
  readonly bytes: number;
}

/**
 * A cache of the newest commits, limited in size. A ring of slots instead of a map: the outgrown
 * tables of a map point to the next one, and once one is in the old generation of the heap, all
 * later ones stay in memory too.
 */
export class RecentCommits<Entry extends OfCommit> {
  readonly #places: (Entry | undefined)[];
  #bytes = 0;
  /** The last commit that was dropped. */
  #forgotten = 0;

  constructor(
    private readonly capacity: number,
    private readonly maxBytes: number,
  ) {
    this.#places = Array.from({ length: capacity }, () => undefined);
  }

  find(seq: number): Entry | undefined {
    const entry = this.#places[seq % this.capacity];
    return entry?.commit.seq === seq ? entry : undefined;
  }

  keep(entry: Entry): void {
    const place = entry.commit.seq % this.capacity;
    const before = this.#places[place];
    // A reader that is far behind must not evict what all others are about to read.
    if (before && before.commit.seq > entry.commit.seq) return;
    if (this.#bytes + entry.bytes > this.maxBytes) this.clear();
    else if (before) this.#bytes -= before.bytes;
    this.#places[place] = entry;
    this.#bytes += entry.bytes;
  }

  /** Drops the commits up to this one. */
  forgetTo(seq: number): void {
    const last = Math.max(this.#forgotten, seq - this.capacity);
    for (let next = last + 1; next <= seq; next++) this.#forget(next);
    this.#forgotten = Math.max(this.#forgotten, seq);
  }

  /** Drops all, and resets the position: new commits may reuse the numbers. */
  clear(): void {
    this.#places.fill(undefined);
    this.#bytes = 0;
    this.#forgotten = 0;
  }

  #forget(seq: number): void {
    const entry = this.#places[seq % this.capacity];
    if (!entry || entry.commit.seq > seq) return;
    this.#places[seq % this.capacity] = undefined;
    this.#bytes -= entry.bytes;
  }
}
