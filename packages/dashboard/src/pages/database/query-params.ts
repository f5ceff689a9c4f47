import { emptyDraft, ops, type Draft, type Row } from './query.js';

/**
 * A query in the address: `where=age gt 30`, repeated, with `q`, `match`, `sort` and `limit`. A field is
 * encoded, because a space ends it.
 */
export function draftIn(text: string): Draft {
  const params = new URLSearchParams(text);
  const sort = params.get('sort') ?? '';
  const limit = params.get('limit') ?? '';
  return {
    search: params.get('q') ?? '',
    rows: params.getAll('where').flatMap(rowOf),
    match: params.get('match') === 'any' ? 'any' : 'all',
    sortBy: sort.replace(/^-/, ''),
    descending: sort.startsWith('-'),
    limit: /^[1-9]\d{0,5}$/.test(limit) ? limit : emptyDraft.limit,
  };
}

function rowOf(text: string, index: number): Row[] {
  const [, field, op, value = ''] = /^(\S+) (\S+)(?: (.*))?$/s.exec(text) ?? [];
  if (field === undefined || !Object.hasOwn(ops, op!)) return [];
  try {
    return [{ id: index, field: decodeURIComponent(field), op: op!, value }];
  } catch {
    // A percent sign that encodes nothing: not an address of ours.
    return [];
  }
}

export function paramsOf({ search, rows, match, sortBy, descending, limit }: Draft) {
  return {
    q: search.trim(),
    where: rows.map(({ field, op, value }) => `${encodeURIComponent(field.trim())} ${op} ${value}`),
    match: rows.length > 1 && match === 'any' ? 'any' : '',
    sort: sortBy.trim() === '' ? '' : `${descending ? '-' : ''}${sortBy.trim()}`,
    limit: limit === emptyDraft.limit ? '' : limit,
  };
}
