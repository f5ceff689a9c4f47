import { Refusal, UsageError } from '@millrace/kit/errors';
import { isUlid } from '@millrace/kit/ulid';
import type { AggregateQuery, FindQuery, PlanReport, StoredRecord } from '@millrace/db';
import type { RemoteCollection, RemoteDatabase } from '@millrace/db/client';
import type { Flags, Tools } from '../base/tools.js';
import { renderTable } from '../render/table.js';
import { requireCollection } from './catalog.js';
import {
  documentOf,
  filterOf,
  listOf,
  lookupsOf,
  parseOrder,
  wholeNumber,
} from '../base/arguments.js';
import type { Terminal } from '../base/terminal.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { counted } from '@millrace/contract/lists';
import { recordSheet, cellOf, recordsTable } from './records-table.js';
import { aggregateJson, planJson, recordJson } from './shapes.js';
import { suggestion } from '@millrace/kit/nearest';

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
  collection: string,
  name: string,
  flags: ConnectionFlags & { fields?: string },
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const fields = listOf(flags.fields);
  const record = await recordNamed(await connected(), collection, name, fields);
  terminal.show({ record: recordJson(record) }, (out) => recordSheet(record, out));
}

type FindFlags = ConnectionFlags &
  Flags<'filter orderBy limit cursor fields exclude search near lookup', 'fuzzy all count explain'>;

type AggregateFlags = ConnectionFlags &
  Flags<'filter groupBy lookup having orderBy limit', 'explain'> & { compute?: string[] };

async function queryOf(conditions: readonly string[], flags: FindFlags, terminal: Terminal) {
  const { exclude, search, near, fuzzy = false, explain = false } = flags;
  return {
    filter: filterOf(conditions, flags.filter),
    orderBy: parseOrder(flags.orderBy),
    fields: listOf(flags.fields),
    projection: exclude === undefined ? undefined : { exclude: listOf(exclude) },
    search: search === undefined ? undefined : { text: search, fuzzy },
    near: near === undefined ? undefined : ((await documentOf(near, terminal)) as never),
    lookup: lookupsOf(flags.lookup),
    limit: wholeNumber(flags.limit, '--limit'),
    cursor: flags.cursor,
    explain,
  };
}

export async function findRecords(
  collection: string,
  conditions: readonly string[],
  flags: FindFlags,
  tools: ConnectedTools,
): Promise<void> {
  const { limit, ...query } = await queryOf(conditions, flags, tools.terminal);
  const { all } = flags;
  const database = await tools.connected();
  const records = database.collection(collection);
  if (flags.count) {
    const isRanked = query.search !== undefined || query.near !== undefined;
    const count = isRanked ? await hitCount(records, query) : await records.count(query.filter);
    if (count === 0) await requireCollection(database, collection);
    tools.terminal.showLine({ count }, `${count}\n`);
    return;
  }
  if (all) await requireCollection(database, collection);
  if (all) return streamAll(records.stream({ ...query, limit }), tools);
  const page = await records.find({ ...query, limit });
  if (page.records.length === 0) await requireCollection(database, collection);
  const shown = {
    records: page.records.map(recordJson),
    next_cursor: page.nextCursor,
    read_seq: page.readSeq,
    ...(page.plan ? { plan: planJson(page.plan) } : {}),
  };
  const more = `There are more. Continue with --cursor ${page.nextCursor}, or use --all.\n`;
  tools.terminal.show(shown, (out) =>
    [
      page.records.length > 0 ? recordsTable(page.records, out) : '',
      `${counted(page.records.length, 'record')}\n`,
      page.nextCursor === '' ? '' : more,
      page.plan ? planText(page.plan) : '',
    ].join(''),
  );
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
  collection: string,
  field: string,
  conditions: readonly string[],
  flags: ConnectionFlags & { filter?: string },
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const filter = filterOf(conditions, flags.filter);
  const database = await connected();
  const values = await database.collection(collection).distinct(field, filter);
  if (values.length === 0) await requireCollection(database, collection);
  terminal.show({ values }, values.map((value) => `${cellOf(value)}\n`).join(''));
}

export async function aggregateRecords(
  collection: string,
  conditions: readonly string[],
  flags: AggregateFlags,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const { having, explain = false } = flags;
  const isJson = having?.trimStart().startsWith('{');
  const options = {
    filter: filterOf(conditions, flags.filter),
    groupBy: parseGroups(flags.groupBy),
    lookup: lookupsOf(flags.lookup),
    aggregates: (flags.compute ?? []).map(parseAccumulator),
    having: isJson
      ? filterOf([], having, '--having')
      : filterOf(having === undefined ? [] : [having], undefined),
    orderBy: parseOrder(flags.orderBy),
    limit: wholeNumber(flags.limit, '--limit'),
    explain,
  };
  const database = await connected();
  const result = await database.collection(collection).aggregate(options as AggregateQuery);
  if (!result.groups.some(({ count }) => count > 0)) await requireCollection(database, collection);
  const groupBy = options.groupBy.map((group) => (typeof group === 'string' ? group : group.as));
  const names = options.aggregates.map(({ name }) => name);
  const titles = [...groupBy, ...(names.includes('count') ? [] : ['count']), ...names];
  const rows = result.groups.map(({ key, count, values }) =>
    titles.map((title) => {
      if (groupBy.includes(title)) return cellOf(key[title]);
      return title in values ? cellOf(values[title]) : cellOf(count);
    }),
  );
  const total = groupBy.length > 0 ? `${counted(rows.length, 'group')}\n` : '';
  terminal.show(
    aggregateJson(result, explain),
    (out) => renderTable(titles, rows, out) + total + (explain ? planText(result.plan) : ''),
  );
}

function planText(plan: PlanReport): string {
  const how = plan.fullScan ? 'full scan' : `index ${plan.index}`;
  const sorted = plan.sortedInMemory ? ', sorted in memory' : '';
  const time = `${plan.elapsedMs.toFixed(1)} ms`;
  const note = plan.note === undefined ? '' : `${plan.note}\n`;
  return `Plan: ${how}, ${plan.rowsScanned} rows read${sorted}, ${time}\n${note}`;
}

interface AccumulatorText {
  name: string;
  op: string;
  field?: string;
}

const ops = ['count', 'sum', 'avg', 'min', 'max', 'count_distinct', 'first', 'last'];

/** Parses `oldest=max(age)`, `max(age)` or `count`. The default name is `max_age`, or `count`. */
export function parseAccumulator(text: string): AccumulatorText {
  const match = /^(?:([^=()\s]+)=)?([a-z_]+)(?:\(\s*([^()\s]*)\s*\))?$/.exec(text);
  const [, name, op, field] = match ?? [];
  if (op === undefined || !ops.includes(op)) {
    const hint = op === undefined ? '' : suggestion(op, ops);
    throw new UsageError(
      `"${text}" is not an aggregate. Write name=op(field), as in oldest=max(age); ops are ` +
        `${ops.join(', ')}${hint || '.'}`,
    );
  }
  if (!field && op !== 'count') {
    throw new UsageError(`"${text}" lacks a field. Write ${op}(field), as in ${op}(age).`);
  }
  if (!field) return { name: name ?? 'count', op };
  return { name: name ?? `${op}_${field}`, op, field };
}

/** A field, or an expression with the name of its values. */
type GroupText =
  | string
  | { dateTrunc: { field: string; unit: string; zone?: string }; as: string }
  | { bucket: { field: string; edges: (number | string)[] }; as: string };

/** Parses `city,day=dateTrunc(at,day,Europe/Bern),size=bucket(n,0,10,100)`. */
function parseGroups(text = ''): GroupText[] {
  const parts = text.match(/[^,()]+(?:\([^()]*\))?/g) ?? [];
  return parts.map((each) => {
    const part = each.trim();
    const match = /^(?:([^=()\s]+)=)?([A-Za-z]+)\(([^()]*)\)$/.exec(part);
    if (!match) return part;
    const [, name, op = '', given = ''] = match;
    const [field = '', ...rest] = given.split(',').map((one) => one.trim());
    const as = name ?? field;
    const [unit = '', zone] = rest;
    if (op === 'dateTrunc') return { dateTrunc: { field, unit, ...(zone && { zone }) }, as };
    if (op === 'bucket') {
      const edges = rest.map((edge) => (Number.isNaN(Number(edge)) ? edge : Number(edge)));
      return { bucket: { field, edges }, as };
    }
    throw new UsageError(
      `"${part}" is not an expression to group by. Write name=dateTrunc(field,unit,zone) or ` +
        `name=bucket(field,edge,edge)${suggestion(op, ['dateTrunc', 'bucket']) || '.'}`,
    );
  });
}
