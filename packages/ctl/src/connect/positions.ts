import type { Filter } from '@millrace/db';
import type { RemoteCollection, RemoteDatabase } from '@millrace/db/client';
import type { ConnectorConfig, ConnectorOp } from './connectors-file.js';
import { positionsCollection } from './positions-collection.js';

/** How far a connector is: every change up to `seq` is in the queue. */
export interface Position {
  collection: string;
  queue: string;
  on: ConnectorOp[];
  filter: Filter | null;
  seq: number;
  /** "" before the first message of the watch. */
  resume_token: string;
  updated_at: string;
  /** Why it does not continue; "" while it works. */
  error: string;
}

/** The saved position of one connector. */
export class SavedPosition {
  readonly #positions: RemoteCollection<Position>;
  #saved: Position | undefined;

  constructor(
    private readonly database: RemoteDatabase,
    private readonly config: ConnectorConfig,
    private readonly now: () => number,
  ) {
    this.#positions = database.collection<Position>(positionsCollection);
  }

  /** A new connector starts after the last commit; that is saved before it watches. */
  async load(): Promise<Position> {
    const found = await this.#positions.findByKey(this.config.name);
    const isSame = found?.data.collection === this.config.collection;
    if (found && isSame) return (this.#saved = found.data);
    const { durableSeq } = await this.database.status({ includeCollections: false });
    return this.save(durableSeq, '');
  }

  /** Saves that all changes up to `seq` are in the queue. */
  async save(seq: number, resumeToken: string): Promise<Position> {
    return this.#write({ seq, resume_token: resumeToken, error: '' });
  }

  /** Saves why the connector does not continue. */
  async saveError(error: string): Promise<void> {
    const saved = this.#saved;
    if (!saved || saved.error === error) return;
    await this.#write({ seq: saved.seq, resume_token: saved.resume_token, error });
  }

  get seq(): number {
    return this.#saved?.seq ?? 0;
  }

  get hasError(): boolean {
    return (this.#saved?.error ?? '') !== '';
  }

  async #write(place: Pick<Position, 'seq' | 'resume_token' | 'error'>): Promise<Position> {
    const { collection, queue, on, filter, name } = this.config;
    const updatedAt = new Date(this.now()).toISOString();
    const position: Position = {
      collection,
      queue,
      on: [...on],
      filter: filter ?? null,
      ...place,
      updated_at: updatedAt,
    };
    await this.#positions.upsert(name, position);
    return (this.#saved = position);
  }
}
