import { Refusal } from '@millrace/kit/errors';
import type { GrowingBytes } from '../value/bytes.js';
import type { JsonObject } from '../value/documents.js';
import {
  migrated,
  migrationsCollection,
  nextState,
  versionAt,
  type Migration,
  type MigrationState,
} from '../value/migrations.js';
import type { CollectionInfo, Core } from '../core/core.js';
import type { Codec, DecodedRecord } from '../format/codec.js';
import { encodeDocument, type RecordImage } from '../format/record.js';
import { CommitBuilder } from './mutations.js';

/** Decodes records of a collection that is migrated, each in the form of the last version. */
class MigratingCodec implements Codec {
  constructor(
    private readonly codec: Codec,
    private readonly collection: string,
    private readonly migrations: readonly Migration[],
    readonly state: MigrationState,
  ) {}

  decode(bytes: Uint8Array, start: number, end: number, record?: DecodedRecord): JsonObject {
    const data = this.codec.decode(bytes, start, end);
    const version = record ? versionAt(this.state, record.seq) : this.state.version;
    if (version === this.state.version) return data;
    return migrated(this.collection, this.migrations, version, record!.id, data);
  }

  json(bytes: Uint8Array, start: number, end: number, record?: DecodedRecord): Buffer {
    return Buffer.from(JSON.stringify(this.decode(bytes, start, end, record)));
  }

  writeJson(
    to: GrowingBytes,
    bytes: Uint8Array,
    start: number,
    end: number,
    record?: DecodedRecord,
  ): void {
    to.put(this.json(bytes, start, end, record));
  }
}

const recordsPerStep = 100;

/** Migrates the records of the collections in the background, and those that are read at once. */
export class MigrationRun {
  readonly #pending: [CollectionInfo, MigratingCodec][] = [];
  #problem: Error | undefined;
  #running = Promise.resolve();

  constructor(
    private readonly core: Core,
    private readonly signal: AbortSignal,
  ) {}

  /** Resolves when all records are migrated; rejects with the first one that cannot be. */
  async done(): Promise<void> {
    await this.#running;
    if (this.#problem) throw this.#problem;
  }

  /** Notes the versions of the stored records: from here on reads give the last one. */
  async declare(name: string, migrations: readonly Migration[]): Promise<void> {
    const { core } = this;
    const [collection, state] = await core.writer.submit(() => {
      const found = core.collectionNow(name);
      const [first] = core.view().scan(found.id, {}, () => true);
      const before = this.#stateOf(name) ?? { version: 0, levels: [] };
      const next = nextState(name, before, migrations, core.state.seq, !first);
      const isSame = JSON.stringify(next) === JSON.stringify(before);
      if (!isSame) this.#save(name, next);
      return [found, next] as const;
    });
    if (state.levels.length === 0) return;
    const codec = new MigratingCodec(core.codec, name, migrations, state);
    core.migrating.set(collection.id, codec);
    this.#pending.push([collection, codec]);
  }

  start(): void {
    this.#running = this.#run().catch((error: unknown) => {
      if (this.signal.aborted) return;
      this.#problem = error as Error;
      this.core.log.error({ err: error }, 'migration stopped');
    });
  }

  async #run(): Promise<void> {
    for (const [collection, codec] of this.#pending) {
      const isComplete = await this.#migrate(collection, codec.state);
      if (this.signal.aborted) return;
      if (!isComplete) continue;
      const { version } = codec.state;
      await this.core.writer.submit(() => this.#save(collection.name, { version, levels: [] }));
      this.core.migrating.delete(collection.id);
      this.core.log.info({ collection: collection.name, version }, 'collection migrated');
    }
  }

  /** False: some record could not be migrated; reads of it are refused. */
  async #migrate(collection: CollectionInfo, state: MigrationState): Promise<boolean> {
    let isComplete = true;
    for (let after: string | undefined, isEnd = false; !isEnd && !this.signal.aborted;) {
      const ids = await this.core.writer.submit(() => this.#idsAfter(collection, after));
      isEnd = ids.length < recordsPerStep;
      after = ids.at(-1) ?? after;
      const write = (some: readonly string[]) =>
        this.core.writer.submit(() => this.#write(collection, state, some));
      try {
        await write(ids);
      } catch (error) {
        if (!(error instanceof Refusal) || this.signal.aborted) throw error;
        // One of them failed: the others are written without it.
        for (const id of ids) {
          await write([id]).catch((problem: unknown) => {
            if (!(problem instanceof Refusal) || this.signal.aborted) throw problem;
            isComplete = false;
            this.#problem ??= problem;
            this.core.log.error(
              { collection: collection.name, id, err: problem },
              'migration failed',
            );
          });
        }
      }
    }
    return isComplete;
  }

  #idsAfter(collection: CollectionInfo, after: string | undefined): string[] {
    const ids: string[] = [];
    for (const image of this.core.view().scan(collection.id, { after }, () => true)) {
      if (ids.push(image.id) >= recordsPerStep) break;
    }
    return ids;
  }

  #write(collection: CollectionInfo, state: MigrationState, ids: readonly string[]): void {
    const { core } = this;
    const commit = new CommitBuilder(core);
    const isOld = (image: RecordImage | undefined): image is RecordImage =>
      image !== undefined &&
      versionAt(state, image.seq) !== state.version &&
      !image.isExpired(commit.now);
    for (const id of ids) {
      const image = core.view().record(collection.id, id);
      if (!isOld(image)) continue;
      const { key, expiresAt } = image;
      commit.store(collection, id, image, encodeDocument(core, image.data), { key, expiresAt });
    }
    commit.finish();
  }

  #stateOf(name: string): MigrationState | undefined {
    const image = this.#stateRecord(name);
    return image && (image.data as unknown as MigrationState);
  }

  #stateRecord(name: string): RecordImage | undefined {
    const states = this.core.catalog.find(migrationsCollection);
    const view = this.core.view();
    const id = states && view.idOfKey(states.id, name);
    return id === undefined ? undefined : view.record(states!.id, id);
  }

  #save(name: string, state: MigrationState): void {
    const { core } = this;
    const states = core.collectionNow(migrationsCollection);
    const before = this.#stateRecord(name);
    const commit = new CommitBuilder(core);
    const id = before?.id ?? core.random.ulid(commit.now);
    const document = encodeDocument(core, state as unknown as JsonObject);
    commit.store(states, id, before, document, { key: name, expiresAt: 0 });
    commit.finish();
  }
}
