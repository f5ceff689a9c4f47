import { create, fromJson, type JsonValue, type MessageInitShape } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import type { DbReason } from '@millrace/contract/db-reasons';
import {
  DataEncoding,
  FilterSchema,
  type AggregateRequestSchema,
  type Filter as FilterMessage,
  type FindRequestSchema,
  type QueryPlan,
} from '@millrace/contract/db';
import { suggestion } from '@millrace/kit/nearest';
import type { AggregateQuery } from '@millrace/engine/query/aggregate-query';
import type { GroupExpression } from '@millrace/engine/query/group-expression';
import type { Filter } from '@millrace/engine/value/filter';
import type { FindQuery, Lookup } from '@millrace/engine/query/query';
import type { OrderBy } from '@millrace/engine/query/sort';
import type { PlanReport } from '@millrace/engine/query/source';
import { jsonForm, refuse } from '@millrace/engine/value/documents';

const maxUint32 = 2 ** 32 - 1;

type FindInit = MessageInitShape<typeof FindRequestSchema>;
type AggregateInit = MessageInitShape<typeof AggregateRequestSchema>;

export function findRequest(query: FindQuery): FindInit {
  onlyMembers('BAD_REQUEST', 'The query', query, [
    'filter',
    'orderBy',
    'limit',
    'skip',
    'cursor',
    'fields',
    'projection',
    'explain',
    'countOnly',
    'allowFullScan',
    'search',
    'near',
    'offset',
    'lookup',
  ]);
  const { allowFullScan, search } = query;
  return {
    ...filterMember('filter', query.filter),
    orderBy: orderOf(query.orderBy),
    limit: whole(query.limit, 'limit'),
    skip: whole(query.skip, 'skip'),
    offset: whole(query.offset, 'offset'),
    lookup: lookupsOf(query.lookup),
    ...(search === undefined ? {} : { search: searchOf(search) }),
    ...(query.near === undefined ? {} : { near: nearOf(query.near) }),
    cursor: query.cursor ?? '',
    fields: textsOf(query.fields, 'fields'),
    ...(query.projection === undefined ? {} : { projection: projectionOf(query.projection) }),
    explain: query.explain ?? false,
    countOnly: query.countOnly ?? false,
    ...(allowFullScan === undefined ? {} : { allowFullScan }),
    encoding: DataEncoding.JSON,
  };
}

export function aggregateRequest(query: AggregateQuery): AggregateInit {
  onlyMembers('BAD_REQUEST', 'The query', query, [
    'filter',
    'groupBy',
    'aggregates',
    'having',
    'orderBy',
    'limit',
    'explain',
    'lookup',
  ]);
  return {
    lookup: lookupsOf(query.lookup),
    ...filterMember('filter', query.filter),
    ...filterMember('having', query.having),
    ...groupsOf(query.groupBy),
    aggregates: (query.aggregates ?? []).map((each, i) => {
      onlyMembers('BAD_REQUEST', `aggregates[${i}]`, each, ['name', 'op', 'field']);
      return { ...each, field: each.field ?? '' };
    }),
    orderBy: orderOf(query.orderBy),
    limit: whole(query.limit, 'limit'),
    // The response always includes the plan, like in process.
    explain: true,
    encoding: DataEncoding.JSON,
  };
}

function nearOf(near: NonNullable<FindQuery['near']>) {
  onlyMembers('BAD_REQUEST', 'near', near, ['field', 'vector', 'k']);
  const { field, vector, k } = near;
  const list = vector instanceof Float32Array ? Array.from(vector) : vector;
  if (!Array.isArray(list) || !list.every((one) => typeof one === 'number')) {
    throw refuse('BAD_REQUEST', 'near.vector must be a list of numbers.');
  }
  return { field, vector: list, k: whole(k, 'near.k') };
}

function lookupsOf(lookup: FindQuery['lookup']) {
  const list: readonly Lookup[] =
    lookup === undefined ? [] : Array.isArray(lookup) ? lookup : [lookup as Lookup];
  return list.map((each, i) => {
    onlyMembers('BAD_REQUEST', `lookup[${i}]`, each, ['from', 'local', 'foreign', 'as', 'limit']);
    const { from, local, foreign, as, limit } = each;
    return { from, local, foreign, as, limit: whole(limit, `lookup[${i}].limit`) };
  });
}

function searchOf(search: NonNullable<FindQuery['search']>) {
  if (typeof search === 'string') return { text: search };
  onlyMembers('BAD_REQUEST', 'search', search, ['text', 'mode', 'fuzzy', 'highlight', 'fields']);
  const { text, mode, fuzzy, highlight, fields } = search;
  return {
    text,
    mode: mode ?? '',
    fuzzy: fuzzy ?? false,
    ...(highlight === undefined ? {} : { highlight }),
    fields: textsOf(fields, 'search.fields'),
  };
}

function projectionOf(projection: NonNullable<FindQuery['projection']>) {
  onlyMembers('BAD_REQUEST', 'projection', projection, ['exclude']);
  return { exclude: textsOf(projection.exclude, 'projection.exclude') };
}

/** Paths, or paths and expressions; the server validates them. */
function groupsOf(groupBy: AggregateQuery['groupBy']) {
  if (groupBy !== undefined && !Array.isArray(groupBy)) {
    throw refuse('BAD_REQUEST', 'groupBy must be a list.');
  }
  const groups: readonly (string | GroupExpression)[] = groupBy ?? [];
  if (groups.every((each) => typeof each !== 'object'))
    return { groupBy: [...(groups as string[])] };
  return {
    groupExpressions: groups.map((each, i) => {
      if (typeof each === 'string') return { field: each };
      const place = `groupBy[${i}]`;
      onlyMembers('BAD_REQUEST', place, each, ['dateTrunc', 'bucket', 'as']);
      const { dateTrunc, bucket, as } = each;
      return {
        as: as ?? '',
        ...(dateTrunc !== undefined && { dateTrunc: truncOf(dateTrunc, `${place}.dateTrunc`) }),
        ...(bucket !== undefined && { bucket: bucketOf(bucket, `${place}.bucket`) }),
      };
    }),
  };
}

function truncOf(dateTrunc: NonNullable<GroupExpression['dateTrunc']>, place: string) {
  onlyMembers('BAD_REQUEST', place, dateTrunc, ['field', 'unit', 'zone']);
  return { ...dateTrunc, zone: dateTrunc.zone ?? '' };
}

function bucketOf(bucket: NonNullable<GroupExpression['bucket']>, place: string) {
  onlyMembers('BAD_REQUEST', place, bucket, ['field', 'edges']);
  const edges = textsOf(bucket.edges as string[], `${place}.edges`);
  return {
    field: bucket.field,
    edges: edges.map((edge, i) => valueOf(edge, `${place}.edges[${i}]`)),
  };
}

/**
 * Converts a filter to a message. The server validates it; this only checks what a message cannot
 * carry.
 */
export function filterMessage(filter: Filter, place = 'filter'): FilterMessage {
  onlyMembers('BAD_FILTER', place, filter, ['field', 'op', 'value', 'and', 'or', 'not']);
  if (filter.or?.length === 0) {
    throw refuse('BAD_FILTER', `${place}.or is empty: leave it out to match all.`);
  }
  const message = create(FilterSchema, {
    field: filter.field ?? '',
    op: filter.op ?? '',
    and: listOf(filter.and, `${place}.and`),
    or: listOf(filter.or, `${place}.or`),
  });
  if (filter.value !== undefined) message.value = valueOf(filter.value, `${place}.value`);
  if (filter.not !== undefined) message.not = filterMessage(filter.not, `${place}.not`);
  return message;
}

export function filterMember<Name extends string>(
  name: Name,
  filter: Filter | undefined,
): { [name in Name]?: FilterMessage } {
  return filter === undefined
    ? {}
    : ({ [name]: filterMessage(filter, name) } as { [name in Name]: FilterMessage });
}

export function planOf(plan: QueryPlan): PlanReport {
  return {
    index: plan.index,
    rowsScanned: Number(plan.rowsScanned),
    rowsReturned: Number(plan.rowsReturned),
    fullScan: plan.fullScan,
    sortedInMemory: plan.sortedInMemory,
    elapsedMs: plan.elapsedMs,
    ...(plan.note !== undefined && { note: plan.note }),
  };
}

function listOf(filters: readonly Filter[] | undefined, place: string): FilterMessage[] {
  if (filters === undefined) return [];
  if (!Array.isArray(filters)) throw refuse('BAD_FILTER', `${place} must be a list of conditions.`);
  return filters.map((filter: Filter, i) => filterMessage(filter, `${place}[${i}]`));
}

function valueOf(value: unknown, place: string) {
  // The library does not distinguish undefined from null, nor report where a value is not JSON.
  const text = JSON.stringify(value, function form(this: Record<string, unknown>, name, part) {
    const given = this[name];
    if (given instanceof Date && Number.isNaN(given.getTime())) {
      throw refuse('BAD_FILTER', `${place} has an invalid Date.`);
    }
    const plain = typeof given === 'object' && given !== null ? jsonForm(given) : undefined;
    if (plain !== undefined) return plain;
    if (typeof part === 'bigint') {
      throw refuse('BAD_FILTER', `${place} has a bigint, which JSON does not have.`);
    }
    if (typeof part !== 'number' || Number.isFinite(part)) return part;
    throw refuse('BAD_FILTER', `${place} has ${part}, which JSON cannot write.`);
  });
  if (text === undefined) throw refuse('BAD_FILTER', `${place} must be a JSON value.`);
  return fromJson(ValueSchema, JSON.parse(text) as JsonValue);
}

/** A text is iterable too: without this check it would be a list of its characters. */
export function textsOf(texts: readonly string[] | undefined, place: string): string[] {
  if (texts === undefined) return [];
  if (Array.isArray(texts)) return [...(texts as readonly string[])];
  throw refuse('BAD_REQUEST', `${place} must be a list.`);
}

function orderOf(steps: readonly OrderBy[] | undefined) {
  if (steps !== undefined && !Array.isArray(steps)) {
    throw refuse('BAD_REQUEST', 'orderBy must be a list.');
  }
  return (steps ?? []).map((step: OrderBy, i) => {
    onlyMembers('BAD_REQUEST', `orderBy[${i}]`, step, ['field', 'desc']);
    return { field: step.field, desc: step.desc ?? false };
  });
}

function whole(value: number | undefined, place: string): number {
  if (value === undefined) return 0;
  if (Number.isSafeInteger(value) && value >= 0 && value <= maxUint32) return value;
  throw refuse('BAD_REQUEST', `${place} must be a whole number of 0 or more, not ${value}.`);
}

/** Unknown members are refused: a misspelt filter would match everything. */
function onlyMembers(
  reason: DbReason,
  place: string,
  given: unknown,
  known: readonly string[],
): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refuse(reason, `${place} must be an object.`);
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const hint = suggestion(name, known) || '.';
    throw refuse(reason, `${place} has an unknown member "${name}"${hint}`);
  }
}
