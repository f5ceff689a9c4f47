import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import { runProgram } from '../registry/run-program.js';

/** Resource usage of one process. */
export interface ProcessRow {
  pid: number;
  parent: number;
  /** Session leader: processes that an agent left behind still belong to it. */
  session: number;
  /** CPU time of the process and, where available, of its ended children. */
  cpuMs: number;
  rss: number;
}

/** Usage of a process tree. */
export interface TreeUse {
  cpuMs: number;
  rss: number;
}

/** Lists all visible processes. */
export type ProcessReader = () => Promise<ProcessRow[]>;

/** Usage of the tree below each of these processes; those that have ended are absent. */
export function treesOf(
  rows: readonly ProcessRow[],
  roots: readonly number[],
): Map<number, TreeUse> {
  const byPid = new Map(rows.map((row) => [row.pid, row]));
  const children = new Map<number, ProcessRow[]>();
  const add = (above: number, row: ProcessRow) => {
    const siblings = children.get(above);
    if (siblings) siblings.push(row);
    else children.set(above, [row]);
  };
  for (const row of rows) {
    add(row.parent, row);
    if (row.session !== row.parent && row.session !== row.pid) add(row.session, row);
  }
  return new Map(
    roots.flatMap((root) => {
      const top = byPid.get(root);
      return top ? [[root, useOf(top, children)] as const] : [];
    }),
  );
}

function useOf(top: ProcessRow, children: ReadonlyMap<number, readonly ProcessRow[]>): TreeUse {
  const seen = new Set([top]);
  // Iterating a Set includes items added during iteration.
  for (const { pid } of seen) for (const child of children.get(pid) ?? []) seen.add(child);
  const use = { cpuMs: 0, rss: 0 };
  for (const { cpuMs, rss } of seen) {
    use.cpuMs += cpuMs;
    use.rss += rss;
  }
  return use;
}

export interface PsOptions {
  clock: Clock;
  environment: Readonly<Record<string, string | undefined>>;
  /** Path of `ps`; default: that of the system. */
  file?: string;
}

const timeoutMs = 10_000;
const columns = 'pid=,ppid=,pgid=,rss=,time=';

/** Lists processes with `ps` where there is no /proc, such as macOS. */
export function psReader({ clock, environment, file = '/bin/ps' }: PsOptions): ProcessReader {
  return async () => {
    const end = await runProgram({
      file,
      args: ['-axo', columns],
      cwd: '/',
      environment: { ...environment, LC_ALL: 'C' },
      timeoutMs,
      clock,
    });
    if (end.kind !== 'exited' || end.code !== 0) {
      throw new Error(`${file} did not list the processes (${end.kind})`);
    }
    return end.stdout.split('\n').flatMap((line) => parsePsLine(line) ?? []);
  };
}

/** `  501   1   501   10240   1:02.50`: size in KiB; the process group is used as session. */
export function parsePsLine(line: string): ProcessRow | undefined {
  const [pid, parent, session, rss, time, ...rest] = line.trim().split(/\s+/);
  const cpuMs = parseCpuTime(time ?? '');
  if (cpuMs === undefined || rest.length > 0) return undefined;
  const row = {
    pid: Number(pid),
    parent: Number(parent),
    session: Number(session),
    cpuMs,
    rss: Number(rss) * 1024,
  };
  return Object.values(row).every(Number.isFinite) ? row : undefined;
}

/** `1:02.50` on macOS, `01:02:03` or `2-01:02:03` elsewhere. */
function parseCpuTime(text: string): number | undefined {
  const match = /^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(text);
  if (!match) return undefined;
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0));
  return Math.round((((days! * 24 + hours!) * 60 + minutes!) * 60 + seconds!) * 1000);
}

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
