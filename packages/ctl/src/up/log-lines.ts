import type { Tone } from '../render/paint.js';
import { printable } from '../render/text.js';
import type { Terminal } from '../base/terminal.js';
import { jsonOf } from './child.js';

const tones: Readonly<Record<string, Tone>> = { warn: 'warn', error: 'bad', fatal: 'bad' };
const nameWidth = 'daemon'.length;

/**
 * Relays the log lines of the servers with the name of the server in front. A terminal gets a
 * readable form; a file gets the line unchanged, and with --json the line alone, which contains the
 * name.
 */
export function logWriter({
  err,
  json,
}: Pick<Terminal, 'err' | 'json'>): (part: { readonly name: string }, line: string) => void {
  return ({ name }, line) => {
    if (json) {
      err.write(`${line}\n`);
      return;
    }
    const head = err.paint('dim', name.padEnd(nameWidth));
    err.write(`${head} ${err.isScreen ? readable(line, err.paint) : line}\n`);
  };
}

/** `09:30:01 warn  the message  key=value` */
function readable(line: string, paint: Terminal['err']['paint']): string {
  const { level, time, msg, component: _component, pid: _pid, ...rest } = jsonOf(line);
  // A line that is no log record, as the log file wraps it.
  if (typeof msg === 'string' && level === undefined && time === undefined) return printable(msg);
  if (typeof level !== 'string' || typeof msg !== 'string') return printable(line);
  const at = typeof time === 'string' ? new Date(time).toTimeString().slice(0, 8) : '';
  const tone = tones[level];
  const word = tone === undefined ? level.padEnd(5) : paint(tone, level.padEnd(5));
  const fields = Object.entries(rest).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const tail = fields.length === 0 ? '' : `  ${paint('dim', printable(fields.join(' ')))}`;
  return `${at} ${word} ${printable(msg)}${tail}`;
}
