import { maxKeyBytes } from '../value/documents.js';
import { isStoredId } from './ids.js';
import { IndexWalk } from './index-walk.js';
import type { Access } from './plan.js';
import { ScanWalk, type WalkSource } from './walk.js';

/** Collects the ids of an access path without duplicates, a few at a time. */
export class IdCollector {
  readonly ids = new Set<string>();
  readonly #steps: Generator<void, void, void>;
  /** Rows read so far. */
  rows = 0;

  constructor(
    private readonly source: WalkSource,
    access: Access,
  ) {
    this.#steps = this.#collect(access);
  }

  /** True when complete. */
  step(): boolean {
    return this.#steps.next().done ?? false;
  }

  *#collect(access: Access): Generator<void, void, void> {
    switch (access.kind) {
      case 'ids':
        this.rows += access.ids.length;
        for (const id of access.ids) if (isStoredId(id)) this.ids.add(id);
        return;
      case 'keys':
        this.rows += access.keys.length;
        for (const key of access.keys) this.#addKey(key);
        return;
      case 'index': {
        const walk = new IndexWalk(this.source, access);
        const before = this.rows;
        for (let chunk = walk.nextIds(); chunk; chunk = walk.nextIds()) {
          for (const id of chunk) this.ids.add(id);
          this.rows = before + walk.rows;
          yield;
        }
        return;
      }
      case 'scan':
      case 'idRange': {
        const walk = new ScanWalk(this.source, false, access.kind === 'scan' ? undefined : access);
        const before = this.rows;
        const visit = (image: { id: string }) => !this.ids.add(image.id);
        for (let ended = false; !ended;) {
          ended = walk.run(visit);
          this.rows = before + walk.rows;
          yield;
        }
        return;
      }
      case 'union':
        for (const part of access.parts) yield* this.#collect(part);
    }
  }

  #addKey(key: string): void {
    // No record has a longer key, and LMDB refuses such a row.
    if (key.length > maxKeyBytes || Buffer.byteLength(key) > maxKeyBytes) return;
    const id = this.source.view.idOfKey(this.source.collection, key);
    if (id !== undefined) this.ids.add(id);
  }
}
