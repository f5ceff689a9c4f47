import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { describe, expect, test } from 'vitest';
import { contentHash } from '../../format/document-writer.js';
import type { JsonObject } from '../../value/documents.js';
import { encodeRecord } from '../../format/record.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { baseBackupName, logBackupName } from './archiver.js';
import { encodeFrame, frameKinds, jsonFrame } from './frames.js';
import { encodeRecordRow } from './portable.js';
import { restore } from './restore.js';

const scratch = useScratch();
const magic = Buffer.from('MILLRACE BACKUP\n');
const id = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';

const header = {
  format_version: 1,
  seq: 1,
  epoch: 1,
  lineage_id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
  created_at: '2026-01-01T00:00:00.000Z',
  format: 'snapshot',
  since_seq: 0,
  chain_hash: '0000000000000000',
};
const catalog = {
  collections: [{ number: 1, name: 'people' }],
  indexes: [],
  only: null,
  since_chain: null,
};

interface Forged {
  header?: object;
  catalog?: unknown;
  frames?: Buffer[];
  trailer?: unknown;
}

/** A file whose checksums are all right: the one who made it made them. */
function forge(forged: Forged, records = 0): string {
  const data = Buffer.concat([
    jsonFrame(frameKinds.catalog, 'catalog' in forged ? forged.catalog : catalog),
    ...(forged.frames ?? []),
  ]);
  const sha256 = createHash('sha256').update(data).digest('hex');
  const trailer = 'trailer' in forged ? forged.trailer : { bytes: data.length, sha256, records };
  const file = join(scratch.directory(), 'forged.backup');
  const head = jsonFrame(frameKinds.header, { ...header, ...forged.header });
  writeFileSync(file, Buffer.concat([magic, head, data, jsonFrame(frameKinds.trailer, trailer)]));
  return file;
}

function recordFrame(data: unknown): Buffer {
  const fields = { rev: 1, seq: 1, createdAt: 1, updatedAt: 1, expiresAt: 0, key: 'k' };
  const hashed = { ...fields, contentHash: contentHash(data as JsonObject) };
  const record = encodeRecord(hashed, Buffer.from(JSON.stringify(data)));
  const row = encodeRecordRow(id, record);
  return encodeFrame(frameKinds.records, Buffer.concat([Buffer.from([0, 0, 0, 1]), row]));
}

async function refusalOf(from: readonly string[], to?: number): Promise<string> {
  const target = join(scratch.directory(), 'target');
  const error: unknown = await restore(from, target, { clock: scratch.clock, to }).catch(
    (reason: unknown) => reason,
  );
  if (!(error instanceof Refusal || error instanceof UsageError)) {
    throw new Error('It was not refused', { cause: error });
  }
  expect(existsSync(target)).toBe(false);
  return error instanceof Refusal ? error.detail : error.message;
}

test('restore: a forged file without a fault is restored', async () => {
  const file = forge({ frames: [recordFrame({ n: 1 })] }, 1);
  const target = join(scratch.directory(), 'target');
  expect(await restore([file], target, { clock: scratch.clock })).toMatchObject({ records: 1 });
});

describe('restore: refuses what a forged file says', () => {
  test.each<[string, object]>([
    ['seq', { seq: 'many' }],
    ['seq', { seq: 2 ** 53 }],
    ['seq', { seq: -1 }],
    ['since_seq', { since_seq: 5 }],
    ['epoch', { epoch: 2 ** 40 }],
    ['lineage_id', { lineage_id: '../../etc' }],
    ['created_at', { created_at: 'soon' }],
    ['chain_hash', { chain_hash: 'zz' }],
  ])('header: %s %j', async (name, wrong) => {
    expect(await refusalOf([forge({ header: wrong })])).toContain(`no valid ${name}`);
  });

  test.each<[unknown]>([
    [null],
    [[]],
    [{ ...catalog, collections: null }],
    [{ ...catalog, collections: [null] }],
    [{ ...catalog, collections: [{ number: 1, name: '../../../tmp/x' }] }],
    [{ ...catalog, collections: [{ number: -1, name: 'people' }] }],
    [{ ...catalog, collections: [...catalog.collections, ...catalog.collections] }],
    [{ ...catalog, indexes: [{ collection: 'people', fields: 'n' }] }],
    [{ ...catalog, indexes: [{ collection: 'other', fields: ['n'] }] }],
    [{ ...catalog, only: [1] }],
    [{ ...catalog, since_chain: 7 }],
  ])('catalog: %j', async (wrong) => {
    expect(await refusalOf([forge({ catalog: wrong })])).toMatch(/forged\.backup is damaged/);
  });

  const deep = (levels: number): JsonObject => (levels === 0 ? {} : { a: deep(levels - 1) });
  test.each<[string, unknown]>([
    ['is not an object', [1]],
    ['is not an object', 'text'],
    ['is nested deeper than 32 levels', deep(500)],
    ['has a field named "__proto__"', JSON.parse('{"__proto__": {"a": 1}}')],
  ])('a document that %s', async (problem, data) => {
    expect(await refusalOf([forge({ frames: [recordFrame(data)] }, 1)])).toContain(problem);
  });

  test.each<[unknown]>([[null], [{ bytes: 'all' }], [{ bytes: 1, records: 0, sha256: '' }]])(
    'trailer: %j',
    async (trailer) => {
      expect(await refusalOf([forge({ trailer })])).toMatch(/trailer/);
    },
  );

  test('numbers of changes and lengths that are larger than the frame', async () => {
    const commit = Buffer.alloc(28, 0xff);
    const rows = Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    const record = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.alloc(20, 0xff)]);
    for (const [kind, payload] of [
      [frameKinds.commits, commit],
      [frameKinds.rows, rows],
      [frameKinds.records, record],
    ] as const) {
      expect(await refusalOf([forge({ frames: [encodeFrame(kind, payload)] })])).toMatch(/damaged/);
    }
  });

  test('a frame that says that it has gigabytes, before they are read', async () => {
    const file = forge({});
    const bytes = readFileSync(file);
    const huge = encodeFrame(frameKinds.records, Buffer.alloc(0));
    huge.writeUInt32BE(0xffffffff, 0);
    // The head has a checksum of its own.
    const { crc32 } = await import('node:zlib');
    huge.writeUInt32BE(crc32(huge.subarray(0, 9)), 9);
    const headEnd = magic.length + 13 + bytes.readUInt32BE(magic.length);
    writeFileSync(file, Buffer.concat([bytes.subarray(0, headEnd), huge, Buffer.alloc(1_000)]));
    expect(await refusalOf([file])).toContain('says that it has 4294967308 bytes');
  });

  test('a file that is cut off anywhere', async () => {
    const file = forge({ frames: [recordFrame({ n: 1 })] }, 1);
    const bytes = readFileSync(file);
    for (let length = 0; length < bytes.length; length += 37) {
      writeFileSync(file, bytes.subarray(0, length));
      expect(await refusalOf([file])).toMatch(/incomplete|damaged|not a Millrace backup/);
    }
  });
});

describe('restore: refuses an archive', () => {
  test('with a link in it', async () => {
    const archive = join(scratch.directory(), 'archive');
    mkdirSync(archive);
    symlinkSync(forge({}), join(archive, baseBackupName(1)));
    expect(await refusalOf([archive])).toContain('is not a file but a link');
  });

  test.skipIf(process.platform === 'win32')('with a pipe in it', async () => {
    const archive = join(scratch.directory(), 'archive');
    mkdirSync(archive);
    const pipe = join(archive, logBackupName(1, 9));
    execFileSync('mkfifo', [pipe]);
    expect(await refusalOf([archive])).toContain('is not a file but a link');
    expect(await refusalOf([pipe])).toContain('it is not a file');
  });

  test('whose names say more than its files', async () => {
    const archive = join(scratch.directory(), 'archive');
    mkdirSync(archive);
    writeFileSync(join(archive, baseBackupName(1)), readFileSync(forge({})));
    writeFileSync(join(archive, logBackupName(2, 999_999_999_999)), readFileSync(forge({})));
    expect(await refusalOf([archive], 5)).toMatch(/only the first file may be one/);
    expect(existsSync(join(dirname(archive), 'people'))).toBe(false);
  });
});
