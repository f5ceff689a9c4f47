import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Layer, Overlay } from './overlay/overlay.js';
import type { Tables } from './file/tables.js';

/** The row of `meta` with the LSN of the last batch in the file. */
export const foldedRow = Buffer.from('folded_lsn');

/**
 * How long a batch stays in the overlay before it is folded, unless its layer is full earlier. An
 * fsync of the log takes two to four times as long while a fold syncs its file, so folds are rare.
 */
const foldAfterMs = 1_000;
const retryAfterMs = 1_000;

/** The LSN of the last batch in the file. */
export function foldedLsn(tables: Pick<Tables, 'get'>): number {
  const row = tables.get('meta', foldedRow);
  return row ? row.readUIntBE(0, 6) : 0;
}

export function encodeLsn(lsn: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(lsn, 0, 6);
  return bytes;
}

/** The store whose overlay is folded. */
interface FoldedStore {
  readonly tables: Tables;
  readonly overlay: Overlay;
  readonly durableLsn: number;
}

/**
 * Folds the overlay: moves its layers into LMDB, the oldest first, each in one synced transaction.
 * So the file always ends at a complete batch, and stores which one.
 */
export class OverlayFold {
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;
  /** Why the last fold failed. */
  failure: unknown;
  /** The last batch in the file. */
  foldedLsn: number;

  constructor(
    private readonly store: FoldedStore,
    private readonly options: { clock: Clock; log: Log; onFolded: () => void },
  ) {
    this.foldedLsn = foldedLsn(store.tables);
  }

  /** Called after each batch: folds full layers now, and the rest after a delay. */
  schedule(): void {
    const oldest = this.store.overlay.layers.at(-1);
    if (this.#running || this.#isClosed || !oldest) return;
    const hasFailed = this.failure !== undefined;
    if (oldest.isSealed && !hasFailed && oldest.lastLsn <= this.store.durableLsn) this.start();
    else {
      const delayMs = hasFailed ? retryAfterMs : foldAfterMs;
      this.#timer ??= this.options.clock.after(delayMs, () => this.start());
    }
  }

  /** Starts a fold unless one is running. An error is stored in `failure`. */
  start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#running || this.#isClosed) return;
    this.#running = this.#foldDue()
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
        this.options.onFolded();
        this.schedule();
      });
  }

  /** Folds the whole overlay. */
  async foldAll(): Promise<void> {
    // A finished fold may start the next one.
    while (this.#running) await this.#running;
    this.#timer?.cancel();
    this.#timer = undefined;
    const folding = this.#foldLayers(() => true);
    this.#running = folding.catch(() => undefined).finally(() => (this.#running = undefined));
    await folding;
    this.options.onFolded();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#running;
    if (this.store.overlay.layers.length === 0) return;
    await this.#foldLayers(() => true).catch((error: unknown) => {
      // Nothing is lost: the next open finds it in the log.
      this.options.log.error({ err: error }, 'fold on close failed');
    });
  }

  /** Folds the layer that was open when the fold started, and full ones after it. */
  async #foldDue(): Promise<void> {
    let isFirst = true;
    await this.#foldLayers((layer) => {
      const isDue = isFirst || layer.isSealed;
      isFirst = false;
      return isDue;
    });
  }

  async #foldLayers(isDue: (layer: Layer) => boolean): Promise<void> {
    const { store } = this;
    for (;;) {
      const oldest = store.overlay.layers.at(-1);
      if (!oldest || !isDue(oldest)) return;
      // With relaxed durability readers see batches that are not durable yet: those must wait.
      if (oldest.lastLsn > store.durableLsn) return;
      oldest.isSealed = true;
      try {
        await this.#foldLayer(oldest);
        this.failure = undefined;
      } catch (error) {
        this.failure = error;
        this.options.log.error({ err: error }, 'fold failed');
        throw error;
      }
    }
  }

  async #foldLayer(layer: Layer): Promise<void> {
    const { store } = this;
    const { tables } = store;
    await tables.commit((put, remove) => {
      layer.forEach((table, { key, value }) => {
        if (value) put(table, key, value);
        else remove(table, key);
      });
      put('meta', foldedRow, encodeLsn(layer.lastLsn));
    });
    tables.refresh();
    store.overlay.drop(layer);
    this.foldedLsn = layer.lastLsn;
  }
}
