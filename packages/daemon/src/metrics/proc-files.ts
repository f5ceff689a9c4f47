import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';
import type { ProcessReader, ProcessRow } from './processes.js';

/** USER_HZ: /proc reports times in hundredths of a second, whatever the kernel's tick is. */
const tickMs = 10;
const atOnce = 32;

/** Reads the processes of Linux from /proc. */
export function procReader(directory = '/proc'): ProcessReader {
  let pageBytes: number | undefined;
  return async () => {
    pageBytes ??= await pageSize(directory);
    const pids = (await readdir(directory)).filter((name) => /^\d+$/.test(name));
    const rows: ProcessRow[] = [];
    for (let from = 0; from < pids.length; from += atOnce) {
      const read = pids.slice(from, from + atOnce).map((pid) => statText(directory, pid));
      for (const text of await Promise.all(read)) {
        const row = text === undefined ? undefined : parseStat(text, pageBytes);
        if (row) rows.push(row);
      }
    }
    return rows;
  };
}

// A process may end, or change its owner, between listing and reading.
const goneCodes = new Set(['ENOENT', 'ESRCH', 'EACCES', 'EPERM']);

async function statText(directory: string, pid: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, pid, 'stat'), 'latin1');
  } catch (error) {
    if (goneCodes.has(systemCode(error))) return undefined;
    throw error;
  }
}

/** Parses /proc/<pid>/stat. The name may contain spaces and brackets; the fields follow it. */
export function parseStat(text: string, pageBytes: number): ProcessRow | undefined {
  const pid = Number.parseInt(text, 10);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  const ticks = field(14) + field(15) + field(16) + field(17);
  const row = {
    pid,
    parent: field(4),
    session: field(6),
    cpuMs: ticks * tickMs,
    rss: field(24) * pageBytes,
  };
  return Object.values(row).every(Number.isSafeInteger) ? row : undefined;
}

/** Page size: Node reports our memory in bytes, the kernel in pages. */
async function pageSize(directory: string): Promise<number> {
  const own = parseStat(await readFile(join(directory, 'self', 'stat'), 'latin1'), 1);
  if (!own || own.rss <= 0) return 4096;
  return 2 ** Math.round(Math.log2(process.memoryUsage.rss() / own.rss));
}
