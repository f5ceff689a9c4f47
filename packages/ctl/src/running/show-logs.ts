import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { dataDirectory } from '../base/data-directory.js';
import { rest } from '../base/rest.js';
import type { Flags, Tools } from '../base/tools.js';
import { jsonOf } from '../up/child.js';
import { logWriter } from '../up/log-lines.js';
import { logFile, olderLogFile } from '../up/log-file.js';

export type LogsFlags = Flags<'data', 'follow'> & { lines: string };

const pollMs = 200;

/** Prints the last log lines of the servers, and with --follow new ones until Ctrl-C. */
export async function showLogs(
  part: string | undefined,
  flags: LogsFlags,
  tools: Tools,
): Promise<void> {
  const { out, env, json } = tools.terminal;
  const dataDir = dataDirectory(flags.data, env);
  const file = logFile(dataDir);
  const count = Number(flags.lines);
  if (!Number.isInteger(count) || count < 0) {
    throw new UsageError(`--lines must be a whole number, not "${flags.lines}".`);
  }
  if (!existsSync(file)) {
    throw new Refusal('NOT_FOUND', `${file} does not exist. \`ctl up\` writes it.`);
  }
  // The same form as in the terminal of `ctl up`, on stdout.
  const write = logWriter({ ...tools.terminal, err: out });
  const print = (line: string): void => {
    const { component } = jsonOf(line);
    if (part !== undefined && component !== part) return;
    if (json) out.write(`${line}\n`);
    else write({ name: String(component) }, line);
  };
  const all = readFileSync(file, 'utf8');
  const isOurs = (line: string) => part === undefined || jsonOf(line)['component'] === part;
  let recent = linesOf(all).filter(isOurs);
  if (recent.length < count && existsSync(olderLogFile(dataDir))) {
    const older = linesOf(readFileSync(olderLogFile(dataDir), 'utf8')).filter(isOurs);
    recent = [...older, ...recent];
  }
  recent.slice(Math.max(0, recent.length - count)).forEach(print);
  if (flags.follow) await follow(file, Buffer.byteLength(all), print, tools);
}

async function follow(
  file: string,
  from: number,
  print: (line: string) => void,
  { lifecycle }: Tools,
): Promise<void> {
  let [position, unfinished] = [from, ''];
  for (;;) {
    await rest(pollMs, lifecycle.interrupted);
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    // The file was rotated.
    if (size < position) [position, unfinished] = [0, ''];
    if (size === position) continue;
    const text = unfinished + readFrom(file, position, size);
    position = size;
    const lines = text.split('\n');
    unfinished = lines.pop() ?? '';
    lines.filter((line) => line !== '').forEach(print);
  }
}

function readFrom(file: string, from: number, to: number): string {
  const bytes = Buffer.alloc(to - from);
  const handle = openSync(file, 'r');
  try {
    return bytes.toString('utf8', 0, readSync(handle, bytes, 0, bytes.length, from));
  } finally {
    closeSync(handle);
  }
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
