import { indexRow, sameDefinition, type IndexInfo, type Core } from '../core/core.js';
import type { IndexDefinition } from '../format/entries.js';
import { messageOf } from '@millrace/kit/errors';
import { mustRebuild } from '../core/search-segments.js';
import { CommitBuilder, moveEntries } from './mutations.js';
import type { RecordImage } from '../format/record.js';
import { prefixKey } from '../format/keys.js';

const recordsPerStep = 200;
const rowsPerStep = 2_000;

/** Indexes declared to `open`, by collection. */
export type DeclaredIndexes = ReadonlyMap<string, readonly IndexDefinition[]>;

/**
 * Makes the indexes on disk match the declarations. New ones start in state `building`: from then
 * on every write updates them, while `build` adds the existing records, a few at a time between
 * other writes. Queries use an index only when it is `ready`.
 */
export async function reconcileIndexes(core: Core, declared: DeclaredIndexes): Promise<void> {
  for (const name of declared.keys()) await core.ensureCollection(name);
  const stale = core.catalog
    .indexes()
    .filter(
      (index) =>
        !isDeclared(declared, index) ||
        index.state === 'failed' ||
        (index.definition.kind === 'search' && mustRebuild(index.id, core.store)),
    );
  for (const index of stale) await drop(core, index);
  for (const [collection, definitions] of declared) {
    for (const definition of definitions) await declare(core, collection, definition);
  }
}

/** Builds all indexes that are not ready. Resolves when every index is ready or has failed. */
export async function buildIndexes(core: Core, signal: AbortSignal): Promise<void> {
  for (const index of core.catalog.indexes()) {
    if (index.state === 'building' && !signal.aborted) await build(core, index, signal);
  }
}

function isDeclared(declared: DeclaredIndexes, index: IndexInfo): boolean {
  const definitions = declared.get(index.collection) ?? [];
  return definitions.some((each) => sameDefinition(each, index.definition));
}

async function declare(core: Core, name: string, definition: IndexDefinition): Promise<void> {
  const isKnown = () =>
    core.catalog.find(name)!.indexes.some((index) => sameDefinition(index.definition, definition));
  if (isKnown()) return;
  await core.writer.submit(() => {
    // The job may run twice.
    if (isKnown()) return;
    const id = Math.max(core.state.nextIndex, core.catalog.nextIndex);
    core.writer.state = { ...core.state, nextIndex: id + 1 };
    core.catalog.addIndex({
      id,
      collection: name,
      definition,
      state: 'building',
      problem: '',
      multi: false,
      cut: false,
    });
  });
}

async function build(core: Core, index: IndexInfo, signal: AbortSignal): Promise<void> {
  const collection = core.catalog.find(index.collection)!;
  let after: string | undefined;
  try {
    for (;;) {
      if (signal.aborted || !collection.indexes.includes(index)) return;
      const from = after;
      const last = await core.writer.submit(() => {
        if (!collection.indexes.includes(index) || index.state === 'failed') return undefined;
        const commit = new CommitBuilder(core);
        const records = core.view().scan(collection.id, { after: from }, () => true);
        const some = Array.from(take(records, recordsPerStep));
        for (const record of some) {
          // An expired record must not block a unique value.
          if (record.isExpired(commit.now) && !core.sealed) {
            commit.remove(collection, record, 'expire');
          } else addEntries(core, index, record);
        }
        commit.finish();
        return some.length === recordsPerStep ? some.at(-1)?.id : undefined;
      });
      if (last === undefined) break;
      after = last;
    }
    const isReady = await core.writer.submit(() => {
      const isThere = collection.indexes.includes(index) && index.state !== 'failed';
      if (isThere) core.catalog.setIndexState(index, 'ready');
      return isThere;
    });
    if (isReady) core.log.info({ index: index.name }, 'Index is ready');
  } catch (error) {
    if (!collection.indexes.includes(index)) return;
    // Not in a job: on a full disk it would fail as well. Stored with the next commit.
    core.catalog.setIndexState(index, 'failed', messageOf(error));
    core.log.error({ index: index.name, err: error }, 'Index could not be built');
  }
}

function addEntries(core: Core, index: IndexInfo, record: RecordImage): void {
  const entries = index.compiled.entriesOf(record.stored(core.codec));
  core.catalog.noteEntry(index, entries.multi, entries.cut);
  moveEntries(core, index, record.id, { values: [], unique: [] }, entries, true);
}

function* take<Item>(items: Iterable<Item>, count: number): Iterable<Item> {
  let left = count;
  for (const item of items) {
    yield item;
    if (--left === 0) return;
  }
}

/** The indexes of the settings and those of the system collection. */
export function allDeclared(core: Core, settings: DeclaredIndexes): DeclaredIndexes {
  const all = new Map(settings);
  for (const [name, definitions] of core.declaredIndexes) {
    all.set(name, [...(all.get(name) ?? []), ...definitions]);
  }
  return all;
}

async function drop(core: Core, index: IndexInfo): Promise<void> {
  // A partly removed index must not look complete to the next `open`.
  await core.writer.submit(() =>
    core.catalog.setIndexState(index, 'failed', 'It is being removed.'),
  );
  core.catalog.dropIndex(index);
  const range = { start: prefixKey(index.id), end: prefixKey(index.id + 1), limit: rowsPerStep };
  for (const table of ['index', 'unique'] as const) {
    for (;;) {
      const removed = await core.writer.submit(() => {
        const rows = Array.from(core.writer.range(table, range));
        for (const { key } of rows) core.writer.remove(table, key);
        return rows.length;
      });
      if (removed < rowsPerStep) break;
    }
  }
  await core.writer.submit(() => core.writer.remove('meta', Buffer.from(indexRow(index.id))));
}
