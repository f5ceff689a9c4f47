import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanBytes } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { harmless } from '../base/exchange.js';
import type { Tools } from '../base/tools.js';
import { writeWhole } from '../db/atomic-file.js';
import { targetOf } from '../db/restoring.js';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import { locate } from '../daemon/locate.js';

/** A backup of the directory. Files of later commits come later. */
interface Saved {
  file: string;
  seq: number;
  /** 0 for a full backup. */
  sinceSeq: number;
  lineageId: string;
  createdAt: Date;
}

/** The backups in a directory by commit; each is read whole and checked. */
async function savedIn(directory: string): Promise<Saved[]> {
  const { checkBackup } = await import('@millrace/db');
  const names = (await readdir(directory)).filter((name) => /^daemon-\d+\.backup$/.test(name));
  const files = names.map((name) => join(directory, name));
  const found = await Promise.all(
    files.map(async (file) => ({ file, ...(await checkBackup(file)).header })),
  );
  return found.toSorted((a, b) => a.seq - b.seq);
}

/** Writes a full backup into a new directory, and what happened since into one that has some. */
export async function backUpDaemon(
  directory: string,
  flags: DaemonFlags & { full?: boolean },
  tools: Tools,
): Promise<void> {
  const { terminal, lifecycle } = tools;
  // A wrong address or token is reported by a call that knows how.
  await (await daemonApi(flags, tools)).call('listBackends');
  const place = await locate(flags, terminal.env);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const last = (await savedIn(directory)).at(-1);
  const signal = lifecycle.interrupted;
  let response = await request(place, flags.full ? undefined : last?.seq, signal);
  // The log does not reach back to the last backup, or does not have everything.
  if (response.status === 400 && last) response = await request(place, undefined, signal);
  if (!response.ok || !response.body) {
    const { code = 'UNAVAILABLE', detail = '' } = (await response.json()) as Record<string, string>;
    throw new Refusal(code, harmless(detail));
  }
  const { checkBackup } = await import('@millrace/db');
  const unnamed = join(directory, 'unnamed.backup');
  const check = async (unfinished: string) => {
    const { header } = await checkBackup(unfinished);
    if (!last || last.lineageId === header.lineageId) return;
    throw new Refusal('LINEAGE_MISMATCH', `${directory} has backups of another daemon.`);
  };
  await writeWhole(unnamed, response.body, { signal, check });
  const { header, trailer } = await checkBackup(unnamed);
  const { seq, sinceSeq } = header;
  const file = join(directory, `daemon-${String(seq).padStart(12, '0')}.backup`);
  await rename(unnamed, file);
  const shown = { file, seq, since_seq: sinceSeq, created_at: header.createdAt, ...trailer };
  const what = sinceSeq === 0 ? 'everything' : `what happened since commit ${sinceSeq}`;
  const text = `Backed up ${what} (${humanBytes(trailer.bytes)}) at commit ${seq} to ${file}.\n`;
  const { out, json } = terminal;
  out.write(json ? `${JSON.stringify(shown, null, 2)}\n` : text);
}

function request(
  { url, token }: { url: string; token?: string | undefined },
  sinceSeq: number | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const query = sinceSeq === undefined ? '' : `?since_seq=${sinceSeq}`;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${url}/api/v1/backup${query}`, { headers, signal });
}

/** Restores the backups of a directory into a new data directory. */
export async function restoreDaemon(
  directory: string,
  { data, to: given }: { data: string; to?: string },
  { terminal: { out, json } }: Tools,
): Promise<void> {
  const to = targetOf(given);
  const files = filesFor(await readSaved(directory), to);
  if (files.length === 0) {
    throw new Refusal('NOT_FOUND', `${directory} has no backup${to ? ' that early' : ''}.`);
  }
  const { restore } = await import('@millrace/db');
  await mkdir(data, { recursive: true, mode: 0o700 });
  // A full backup alone is the moment that it was made at.
  const options = to === undefined || files.length === 1 ? {} : { to };
  const restored = await restore(files, join(data, 'daemon'), options).catch((error: unknown) => {
    // The command was used rightly: the files or the directory do not allow it.
    if (!(error instanceof UsageError)) throw error;
    throw new Refusal('RESTORE_REFUSED', error.message, { cause: error });
  });
  const shown = { data, seq: restored.seq, lineage_id: restored.lineageId };
  const text =
    `Restored the daemon at commit ${restored.seq} to ${data}, and verified it.\n` +
    asTyped(`Serve it with: ctl daemon serve --data-dir ${data}\n`);
  out.write(json ? `${JSON.stringify(shown, null, 2)}\n` : text);
}

async function readSaved(directory: string): Promise<Saved[]> {
  try {
    return await savedIn(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Refusal('NOT_FOUND', `There is no directory ${directory}.`, { cause: error });
  }
}

/** The last full backup that is early enough, and those that continue it. */
function filesFor(saved: readonly Saved[], to: number | Date | undefined): string[] {
  const isEarly = ({ seq, createdAt }: Saved) =>
    to === undefined || (typeof to === 'number' ? seq <= to : createdAt <= to);
  const base = saved.findLastIndex((each) => each.sinceSeq === 0 && isEarly(each));
  if (base === -1) return [];
  const files = [saved[base]!];
  for (const each of saved.slice(base + 1)) {
    if (each.sinceSeq === files.at(-1)!.seq) files.push(each);
  }
  return files.map(({ file }) => file);
}
