import { tombstoneMs } from '../task-store.js';
import type { Connections } from './connections.js';
import { Mark } from './mark.js';
import type { Statement } from './statement.js';

/** Removes tombstones that have had their time. */
export class Tombstones {
  readonly #mark: Mark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly deleteTombstones: Statement,
  ) {
    this.#mark = new Mark(monotonic);
  }

  async delete({ now, limit }: { now: number; limit: number }): Promise<number> {
    const by = now - tombstoneMs;
    const from = this.#mark.begin();
    const startedAt = this.monotonic();
    const values = [by, limit, from];
    const [row] = await this.connections.ask<{ gone: number; up_to: number | null }>(
      this.deleteTombstones,
      values,
    );
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    const { gone, up_to: upTo } = row!;
    this.#mark.raise(gone < limit ? by : (upTo ?? 0));
    return gone;
  }
}
