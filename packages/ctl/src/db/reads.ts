import { Refusal } from '@millrace/kit/errors';
import { isUlid } from '@millrace/kit/ulid';
import type { AggregateQuery, FindQuery, PlanReport, StoredRecord } from '@millrace/db';
import type { RemoteCollection, RemoteDatabase } from '@millrace/db/client';
import type { Tools } from '../base/tools.js';
import { renderTable } from '../render/table.js';
import { requireCollection } from './catalog.js';
import type { GroupText } from './aggregates.js';
import { counted } from '@millrace/contract/lists';
import { recordSheet, cellOf, recordsTable } from './records-table.js';
import { aggregateJson, planJson, recordJson } from './shapes.js';

export type Found = StoredRecord<Record<string, unknown>>;

/** Finds a record by key, or by id if the name can be one. */
export async function recordNamed(
  database: RemoteDatabase,
  collection: string,
  name: string,
  fields: readonly string[] = [],
): Promise<Found> {
  const records = database.collection(collection);
  const byId = isUlid(name) ? await records.findById(name, { fields }) : undefined;
  const found = byId ?? (await records.findByKey(name, { fields }));
  if (found) return found;
  const what = isUlid(name) ? 'key or id' : 'key';
  throw new Refusal('KEY_NOT_FOUND', `"${collection}" has no record with the ${what} "${name}".`);
}

export async function getRecord(
  database: RemoteDatabase,
  options: { collection: string; name: string; fields: readonly string[] },
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const record = await recordNamed(database, options.collection, options.name, options.fields);
  terminal.show({ record: recordJson(record) }, (out) => recordSheet(record, out));
}

export interface FindParams extends Pick<
  FindQuery,
  'filter' | 'orderBy' | 'fields' | 'projection' | 'search' | 'near' | 'lookup' | 'cursor'
> {
  collection: string;
  limit: number | undefined;
  all: boolean;
  count: boolean;
  explain: boolean;
}

export async function findRecords(
  database: RemoteDatabase,
  options: FindParams,
  tools: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { out, json } = tools.terminal;
  const { collection, limit, all, count: isCount, ...query } = options;
  const records = database.collection(collection);
  if (isCount) {
    const isRanked = query.search !== undefined || query.near !== undefined;
    const count = isRanked ? await hitCount(records, query) : await records.count(query.filter);
    if (count === 0) await requireCollection(database, collection);
    out.write(json ? `${JSON.stringify({ count })}\n` : `${count}\n`);
    return;
  }
  if (all) await requireCollection(database, collection);
  if (all) return streamAll(records.stream({ ...query, limit }), tools);
  const page = await records.find({ ...query, limit });
  if (page.records.length === 0) await requireCollection(database, collection);
  if (json) {
    const shown = {
      records: page.records.map(recordJson),
      next_cursor: page.nextCursor,
      read_seq: page.readSeq,
      ...(page.plan ? { plan: planJson(page.plan) } : {}),
    };
    out.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  if (page.records.length > 0) out.write(recordsTable(page.records, out));
  out.write(`${counted(page.records.length, 'record')}\n`);
  if (page.nextCursor !== '')
    out.write(`There are more. Continue with --cursor ${page.nextCursor}, or use --all.\n`);
  if (page.plan) out.write(planText(page.plan));
}

/** A search has at most 1,000 hits. */
async function hitCount(
  records: RemoteCollection<Found['data']>,
  query: FindQuery,
): Promise<number> {
  return (await records.find({ ...query, limit: tableRows })).records.length;
}

const tableRows = 1000;

/** Streams all matches: tables of a thousand rows, or one JSON document. */
async function streamAll(
  records: AsyncIterable<Found>,
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { out, json } = terminal;
  let count = 0;
  let rows: Found[] = [];
  if (json) out.write('{"records":[');
  for await (const record of records) {
    if (json) out.write(`${count === 0 ? '\n' : ',\n'}${JSON.stringify(recordJson(record))}`);
    else if (rows.push(record) === tableRows) {
      out.write(recordsTable(rows, out));
      rows = [];
    }
    count++;
    await out.drained();
  }
  if (json) out.write('\n],"next_cursor":""}\n');
  else {
    if (rows.length > 0) out.write(recordsTable(rows, out));
    out.write(`${counted(count, 'record')}\n`);
  }
}

export async function distinctValues(
  database: RemoteDatabase,
  { collection, field, filter }: { collection: string; field: string; filter: FindQuery['filter'] },
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const values = await database.collection(collection).distinct(field, filter);
  if (values.length === 0) await requireCollection(database, collection);
  const { out, json } = terminal;
  if (json) out.write(`${JSON.stringify({ values }, null, 2)}\n`);
  else for (const value of values) out.write(`${cellOf(value)}\n`);
}

export async function aggregateRecords(
  database: RemoteDatabase,
  options: Omit<AggregateQuery, 'aggregates' | 'groupBy'> & {
    collection: string;
    groupBy?: readonly GroupText[];
    aggregates: readonly { name: string; op: string; field?: string }[];
  },
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { out, json } = terminal;
  const { collection, ...query } = options;
  const result = await database.collection(collection).aggregate(query as AggregateQuery);
  if (!result.groups.some(({ count }) => count > 0)) await requireCollection(database, collection);
  if (json) {
    out.write(`${JSON.stringify(aggregateJson(result, options.explain ?? false), null, 2)}\n`);
    return;
  }
  const groupBy = (options.groupBy ?? []).map((group) =>
    typeof group === 'string' ? group : group.as,
  );
  const names = options.aggregates.map(({ name }) => name);
  const titles = [...groupBy, ...(names.includes('count') ? [] : ['count']), ...names];
  const rows = result.groups.map(({ key, count, values }) =>
    titles.map((title) => {
      if (groupBy.includes(title)) return cellOf(key[title]);
      return title in values ? cellOf(values[title]) : cellOf(count);
    }),
  );
  out.write(renderTable(titles, rows, out));
  if (groupBy.length > 0) out.write(`${counted(rows.length, 'group')}\n`);
  if (options.explain) out.write(planText(result.plan));
}

function planText(plan: PlanReport): string {
  const how = plan.fullScan ? 'full scan' : `index ${plan.index}`;
  const sorted = plan.sortedInMemory ? ', sorted in memory' : '';
  const time = `${plan.elapsedMs.toFixed(1)} ms`;
  const note = plan.note === undefined ? '' : `${plan.note}\n`;
  return `Plan: ${how}, ${plan.rowsScanned} rows read${sorted}, ${time}\n${note}`;
}
