import type { BackupHeader, BackupPart } from '@millrace/engine/maintain/backup/parts';
import type { Database } from '@millrace/engine/api/database';
import { lineageOf } from '@millrace/engine/storage/file/state';
import { switchingCopy, noFirstCopy } from './refusals.js';

/** Handle to the node's current database, which a follower replaces with each full copy. */
export class DatabaseHandle {
  #current: Database;
  #isServed = true;
  /** Called when the database or `isServed` changes. */
  onChange: () => void = () => undefined;

  #lineageId: string;

  constructor(
    first: Database,
    private readonly open: () => Promise<Database>,
  ) {
    this.#current = first;
    this.#lineageId = lineageOf(first.core.tables);
  }

  /** The current database, even if it has nothing to serve yet. */
  get current(): Database {
    return this.#current;
  }

  /** The database to serve. Refuses NOT_READY while there is none. */
  get served(): Database {
    if (!this.#isServed) throw noFirstCopy();
    if (!this.#current.isOpen) throw switchingCopy();
    return this.#current;
  }

  /** Lineage id, also available while the database is being replaced. */
  get lineageId(): string {
    return this.#lineageId;
  }

  get isServed(): boolean {
    return this.#isServed;
  }

  set isServed(isServed: boolean) {
    if (isServed === this.#isServed) return;
    this.#isServed = isServed;
    this.onChange();
  }

  /** Replaces the database with a backup of another node. Serves the old data until then. */
  async replace(parts: AsyncIterable<BackupPart>, source: string): Promise<BackupHeader> {
    const header = await this.#current.giveWayTo(parts, source);
    await this.reopen();
    return header;
  }

  /** Reopens the database after a replacement; does nothing while it is open. */
  async reopen(): Promise<void> {
    if (this.#current.isOpen) return;
    this.#current = await this.open();
    this.#lineageId = lineageOf(this.#current.core.tables);
    this.#isServed = true;
    this.onChange();
  }

  close(): Promise<void> {
    return this.#current.close();
  }
}
