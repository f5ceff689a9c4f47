import type { Flags } from '../base/tools.js';
import { isDeepStrictEqual } from 'node:util';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import type { IndexAdvice, IndexStatus, RemoteDatabase } from '@millrace/db/client';
import { asTyped } from '../base/command-name.js';
import { rest } from '../base/rest.js';
import { renderTable, type Sheet } from '../render/table.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { filterOf, listOf, wholeNumber } from '../base/arguments.js';
import { named, readCollections } from './catalog.js';

type CreateIndexFlags = ConnectionFlags &
  Flags<'dims language weights where', 'unique sparse ci search vector int8'> & {
    collation?: 'ci';
    metric?: 'cosine' | 'dot' | 'l2';
    wait: boolean;
  };

const pollMs = 100;

export async function createIndex(
  collection: string,
  given: readonly string[],
  flags: CreateIndexFlags,
  { connected, terminal, lifecycle }: ConnectedTools,
): Promise<void> {
  const { where, wait } = flags;
  const isJson = where?.trimStart().startsWith('{') ?? false;
  const definition = {
    fields: given.flatMap(listOf),
    unique: flags.unique ?? false,
    sparse: flags.sparse ?? false,
    collation: flags.ci ? ('ci' as const) : flags.collation,
    kind: kindOf(flags),
    dims: wholeNumber(flags.dims, '--dims', 1),
    metric: flags.metric,
    storage: flags.int8 ? ('int8' as const) : undefined,
    language: flags.language,
    weights: weightsOf(flags.weights),
    where: isJson
      ? filterOf([], where, '--where')
      : filterOf(where === undefined ? [] : [where], undefined),
  };
  const database = await connected();
  if (definition.kind === 'vector' && definition.fields.length !== 1) {
    throw new UsageError('A vector index has one field.');
  }
  const { index: made, seq } = await database.catalog.createIndex(collection, definition);
  let index = made;
  while (wait && index.state === 'building' && !lifecycle.interrupted.aborted) {
    await rest(pollMs, lifecycle.interrupted);
    index = await current(database, collection, index);
  }
  const name = index.fields.join(', ');
  if (index.state === 'failed') {
    const hint = definition.unique ? ' Records have equal values.' : '';
    throw new Refusal(
      'INDEX_FAILED',
      `The index on (${name}) of "${collection}" could not be built.${hint} The log of the ` +
        `server has the reason. Remove it with: ctl db index drop ${collection} ` +
        index.fields.join(' '),
    );
  }
  const verb = seq === 0 ? 'exists already' : 'created';
  terminal.show(
    { index: { collection, ...index }, seq },
    `Index on (${name}) of "${collection}" ${verb}, ${index.state}.\n`,
  );
}

function kindOf({ search, vector }: CreateIndexFlags): 'search' | 'vector' | undefined {
  if (search && vector) throw new UsageError('An index has --search or --vector, not both.');
  return search ? 'search' : vector ? 'vector' : undefined;
}

/** `title=3,body=1` as an object. */
function weightsOf(text: string | undefined): Record<string, number> | undefined {
  if (text === undefined) return undefined;
  const weights = listOf(text).map((each): [string, number] => {
    const [field = '', weight] = each.split('=');
    if (field === '' || !(Number(weight) > 0)) {
      throw new UsageError(`--weights must be such as title=3,body=1, not ${each}.`);
    }
    return [field, Number(weight)];
  });
  return Object.fromEntries(weights);
}

async function current(
  database: RemoteDatabase,
  collection: string,
  wanted: IndexStatus,
): Promise<IndexStatus> {
  const { indexes } = named(await readCollections(database), collection);
  const found = indexes.find((each) => isDeepStrictEqual({ ...each, state: wanted.state }, wanted));
  if (found) return found;
  throw new Refusal(
    'INDEX_NOT_FOUND',
    `The index "${wanted.name}" was dropped while it was built.`,
  );
}

export async function dropIndex(
  collection: string,
  given: readonly string[],
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const fields = given.flatMap(listOf);
  const database = await connected();
  const seq = await database.catalog.dropIndex(collection, fields.join(','));
  terminal.showLine({ seq }, `Index on (${fields.join(', ')}) of "${collection}" dropped.\n`);
}

export async function adviseIndexes(
  collection: string | undefined,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const database = await connected();
  if (collection !== undefined) named(await readCollections(database), collection);
  const all = await database.catalog.adviseIndexes();
  const advice = all.filter((each) => collection === undefined || each.collection === collection);
  terminal.show({ advice: advice.map(adviceJson) }, (out) =>
    advice.length === 0
      ? 'No advice: no slow query since the start of the server lacked an index.\n'
      : adviceText(advice, out),
  );
}

function adviceText(advice: readonly IndexAdvice[], sheet: Sheet): string {
  const titles = ['COLLECTION', 'INDEX', 'QUERIES', 'TOTAL', 'MAX', 'ROWS READ', 'RETURNED'];
  const rows = advice.map((each) => [
    each.collection,
    `${each.fields.join(', ')}${each.collation && ` (${each.collation})`}`,
    each.queryCount,
    humanDuration(Math.round(each.totalMs)),
    humanDuration(Math.round(each.maxMs)),
    each.rowsScanned,
    each.rowsReturned,
    each.filter,
  ]);
  const columns = [...titles.map((title) => ({ title })), 'LAST FILTER'];
  const [first] = advice;
  return (
    renderTable(columns, rows, sheet) +
    asTyped('Create one with: ctl db index create ') +
    `${first!.collection} ${first!.fields.join(' ')}${first!.collation && ' --ci'}\n`
  );
}

/** As the REST API shows it. */
function adviceJson(each: IndexAdvice) {
  return {
    collection: each.collection,
    fields: each.fields,
    query_count: each.queryCount,
    total_ms: each.totalMs,
    max_ms: each.maxMs,
    rows_scanned: each.rowsScanned,
    rows_returned: each.rowsReturned,
    filter: each.filter,
    last_at: each.lastAt.toISOString(),
    collation: each.collation,
  };
}
