import { Refusal, UsageError } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import type { RemoteDatabase, RemoteTransaction } from '@millrace/db/client';
import type { ConnectedTools } from './connection.js';
import type { Terminal } from '../base/terminal.js';
import { durationOf, isObject, parseJson } from '../base/arguments.js';
import { counted } from '@millrace/contract/lists';
import type { Found } from './reads.js';
import { recordJson } from './shapes.js';

const ops = ['insert', 'update', 'merge', 'upsert', 'updateIfRev', 'delete', 'get'] as const;
type Op = (typeof ops)[number];
const takeUpdate: readonly Op[] = ['update', 'upsert', 'updateIfRev'];

/** One operation of `ctl db tx`. */
export interface Operation {
  op: Op;
  collection: string;
  id?: string;
  key?: string;
  /** A document or patch, or operators. */
  data: Record<string, unknown>;
  mode: 'replace' | 'merge';
  expectedRev: number;
  ttlMs?: number;
}

interface Done {
  op: Op;
  collection: string;
  record: Found | undefined;
  created?: boolean;
}

async function readOperations(file: string | undefined, terminal: Terminal): Promise<Operation[]> {
  const fromStdin = file === undefined || file === '-';
  const text = fromStdin
    ? await (await import('node:stream/consumers')).text(terminal.in.stream)
    : await (await import('node:fs/promises')).readFile(file, 'utf8');
  return parseOperations(text, fromStdin ? 'stdin' : file);
}

/** Parses a JSON array, or one object per line; `place` is its name in errors. */
export function parseOperations(text: string, place: string): Operation[] {
  const trimmed = text.trim();
  if (trimmed === '') throw new UsageError(`${place} has no operations.`);
  if (trimmed.startsWith('[')) {
    const list = parseJson(trimmed, place);
    if (!Array.isArray(list)) throw new UsageError(`${place} must be a list of operations.`);
    return list.map((item: unknown, i) => checkOperation(item, `${place}: operation ${i + 1}`));
  }
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    const at = `${place}:${i + 1}`;
    return [checkOperation(parseJson(line, at), at)];
  });
}

const members = ['op', 'collection', 'id', 'key', 'data', 'update', 'mode', 'expected_rev', 'ttl'];

function checkOperation(value: unknown, at: string): Operation {
  if (!isObject(value)) throw new UsageError(`${at} must be an object with op and collection.`);
  for (const name of Object.keys(value)) {
    if (members.includes(name)) continue;
    const hint = suggestion(name, members) || '.';
    throw new UsageError(`${at} has an unknown member "${name}"${hint}`);
  }
  const { op, collection, id, key, mode = 'replace', expected_rev: rev = 0, ttl } = value;
  if (!isOp(op)) {
    const meant = typeof op === 'string' ? suggestion(op, ops) : '';
    throw new UsageError(`${at}: op must be one of ${ops.join(', ')}${meant || '.'}`);
  }
  if (typeof collection !== 'string') throw new UsageError(`${at}: collection is missing.`);
  const data = dataOf(op, value, at);
  for (const [name, text] of Object.entries({ id, key, ttl })) {
    if (text === undefined || typeof text === 'string') continue;
    throw new UsageError(`${at}: ${name} must be a text.`);
  }
  checkAddress(op, { id, key }, at);
  if (mode !== 'replace' && mode !== 'merge') {
    throw new UsageError(`${at}: mode must be replace or merge.`);
  }
  if (typeof rev !== 'number' || !Number.isSafeInteger(rev) || rev < 0) {
    throw new UsageError(`${at}: expected_rev must be a whole number, 0 or more.`);
  }
  const ttlMs = durationOf(ttl as string | undefined, `${at}: ttl`);
  return {
    op,
    collection,
    data,
    mode,
    expectedRev: rev,
    ...(typeof id === 'string' ? { id } : {}),
    ...(typeof key === 'string' ? { key } : {}),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  };
}

/** The document or patch of an operation, or the operators that it has in its place. */
function dataOf(
  op: Op,
  { data, update, mode }: Record<string, unknown>,
  at: string,
): Record<string, unknown> {
  const fail = (problem: string) => new UsageError(`${at}: ${problem}.`);
  if (update === undefined) {
    if (isObject(data)) return data;
    if (op === 'delete' || op === 'get') return {};
    throw fail('data must be a JSON object');
  }
  if (!takeUpdate.includes(op)) throw fail(`${op} takes no update`);
  if (data !== undefined) throw fail('give data or update, not both');
  if (mode !== undefined) throw fail('mode is for data, not for update');
  if (!isObject(update)) throw fail('update must be a JSON object');
  // Without an operator it would replace the document.
  if (Object.keys(update).some((name) => name.startsWith('$'))) return update;
  throw fail('update has no operator such as $set or $inc');
}

function checkAddress(op: Op, { id, key }: { id: unknown; key: unknown }, at: string): void {
  if (op === 'insert') {
    if (id !== undefined && key !== undefined)
      throw new UsageError(`${at}: give id or key, not both.`);
    return;
  }
  if (op === 'upsert' && key === undefined) throw new UsageError(`${at}: upsert needs a key.`);
  if ((id === undefined) === (key === undefined)) {
    throw new UsageError(`${at}: ${op} needs either an id or a key.`);
  }
}

function isOp(op: unknown): op is Op {
  return (ops as readonly unknown[]).includes(op);
}

/** Runs the operations in one transaction and prints their results. */
export async function runOperations(
  file: string | undefined,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const operations = await readOperations(file, terminal);
  const database = await connected();
  const [done, transaction] = await database.transaction(async (transaction) => {
    const done: Done[] = [];
    for (const [at, operation] of operations.entries()) {
      done.push(await carryOut(database, transaction, operation).catch(namePlace(at, operation)));
    }
    return [done, transaction] as const;
  });
  const commit = transaction.committed!;
  const results = done.map(({ op, collection, record, created }) => ({
    op,
    collection,
    record: record ? recordJson(record) : null,
    ...(created === undefined ? {} : { created }),
  }));
  const lines = done.map(({ op, collection, record }) => {
    const name = record ? `${record.key || record.id} rev ${record.rev}` : 'not found';
    return `${op} ${collection} ${name}\n`;
  });
  terminal.show(
    { seq: commit.seq, operations: commit.operations, results },
    `${lines.join('')}Committed ${counted(commit.operations, 'write')} as commit ${commit.seq}.\n`,
  );
}

function namePlace(at: number, { op, collection }: Operation) {
  return (error: unknown): never => {
    // The transaction helper handles conflicts and lost transactions.
    if (!(error instanceof Refusal) || error.code.startsWith('TX_')) throw error;
    const detail = `operation ${at + 1} (${op} ${collection}): ${error.detail} Nothing was written.`;
    throw new Refusal(error.code, detail, { ...error.extra, cause: error });
  };
}

async function carryOut(
  database: RemoteDatabase,
  transaction: RemoteTransaction,
  { op, collection, id, key, data, mode, expectedRev, ttlMs }: Operation,
): Promise<Done> {
  const records = database.collection(collection);
  const options = { transaction, ttlMs };
  const byId = id !== undefined;
  const write = async (): Promise<{ record: Found | undefined; created?: boolean }> => {
    switch (op) {
      case 'insert':
        if (key !== undefined) return { record: await records.insertWithKey(key, data, options) };
        return { record: await records.insert(data, { ...options, ...(byId ? { id } : {}) }) };
      case 'update':
        if (byId) return { record: await records.update(id, data, options) };
        return { record: await records.updateByKey(key!, data, options) };
      case 'merge':
        if (byId) return { record: await records.merge(id, data, options) };
        return { record: await records.mergeByKey(key!, data, options) };
      case 'upsert':
        if (mode === 'merge') return records.upsertMerge(key!, data, options);
        return records.upsert(key!, data, options);
      case 'updateIfRev': {
        const address = byId ? { id } : { key: key! };
        return { record: await records.updateIfRev(address, expectedRev, data, options) };
      }
      case 'delete':
        if (byId) return { record: await records.delete(id, options) };
        return { record: await records.deleteByKey(key!, options) };
      case 'get':
        if (byId) return { record: await records.findById(id, options) };
        return { record: await records.findByKey(key!, options) };
    }
  };
  return { op, collection, ...(await write()) };
}
