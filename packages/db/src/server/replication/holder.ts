import type { BackupHeader, BackupPart } from '../../engine/backup/parts.js';
import type { Database } from '../../engine/database.js';
import { lineageOf } from '../../engine/format.js';
import { changingOver, noFirstCopy } from './refusals.js';

/** The database of this node: a follower that takes a fresh copy goes on with another one. */
export class DatabaseHolder {
  #current: Database;
  #isServed = true;
  /** Told whenever there is another database, or something to serve, or nothing. */
  onChange: () => void = () => undefined;

  #lineageId: string;

  constructor(
    first: Database,
    private readonly open: () => Promise<Database>,
  ) {
    this.#current = first;
    this.#lineageId = lineageOf(first.core.tables);
  }

  /** The database as it stands, also one that has nothing to serve yet. */
  get current(): Database {
    return this.#current;
  }

  /** The database to serve from. Refuses NOT_READY while there is none. */
  get served(): Database {
    if (!this.#isServed) throw noFirstCopy();
    if (!this.#current.isOpen) throw changingOver();
    return this.#current;
  }

  /** Id of the history, also in the moment in which another file takes the place of this one. */
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

  /** Puts a backup of another node in place of all there is. Serves the old data until then. */
  async replace(parts: AsyncIterable<BackupPart>, source: string): Promise<BackupHeader> {
    const header = await this.#current.giveWayTo(parts, source);
    await this.reopen();
    return header;
  }

  /** Opens the database again after one that gave way; nothing to do while it is open. */
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
