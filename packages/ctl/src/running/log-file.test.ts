import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LogFile, logFile, olderLogFile } from './log-file.js';

let dataDir = '';
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'log-file-'))));
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

test('log file: keeps JSON lines and wraps others, for the owner only', () => {
  const file = new LogFile(dataDir);
  file.append('db', '{"component":"db","msg":"a"}');
  file.append('queue', 'Segmentation fault');
  expect(readFileSync(logFile(dataDir), 'utf8')).toBe(
    '{"component":"db","msg":"a"}\n{"component":"queue","msg":"Segmentation fault"}\n',
  );
  expect(statSync(logFile(dataDir)).mode & 0o777).toBe(0o600);
});

test('log file: rotates at its limit and continues an existing file', () => {
  new LogFile(dataDir, 60).append('db', '{"msg":"first line of all"}');
  const file = new LogFile(dataDir, 60);
  file.append('db', '{"msg":"second line of all"}');
  file.append('db', '{"msg":"third"}');
  expect(readFileSync(olderLogFile(dataDir), 'utf8').match(/\n/g)).toHaveLength(2);
  expect(readFileSync(logFile(dataDir), 'utf8')).toBe('{"msg":"third"}\n');
});
