import { Refusal, UsageError } from '@millrace/kit/errors';
import { wholeNumber } from '../base/arguments.js';
import { harmless } from '../base/exchange.js';
import type { Flags, Tools } from '../base/tools.js';
import { renderTable, wrapped } from '../render/table.js';
import { queueApi, type QueueFlags } from './api.js';
import { readConfigFile, type ConfigFile } from './config-file.js';

type ConfigSetFlags = QueueFlags & Flags<'ifVersion', 'validateOnly'>;

type Shows = Pick<Tools, 'terminal'>;

export async function showConfig(
  queue: string,
  flags: QueueFlags & { bare?: boolean },
  tools: Tools,
): Promise<void> {
  const { body } = await queueApi(flags, tools).call('getQueueConfig', { queue });
  const { name, paused, version, created_at, updated_at, ...bare } = body;
  const shown = flags.bare ? bare : { name, paused, version, created_at, updated_at, ...bare };
  tools.terminal.out.write(`${JSON.stringify(shown, null, 2)}\n`);
}

export async function writeConfig(
  queue: string,
  file: string,
  flags: ConfigSetFlags,
  tools: Tools,
): Promise<void> {
  const { terminal } = tools;
  const version = wholeNumber(flags.ifVersion, '--if-version');
  if (version === 0) throw new UsageError('--if-version must be at least 1, the first version.');
  const source = await readConfigFile(file, terminal);
  const isCheck = flags.validateOnly ?? false;
  const { body: written } = await queueApi(flags, tools)
    .call('putQueueConfig', {
      queue,
      body: source.config,
      ...(isCheck ? { query: { validate_only: 'true' } } : {}),
      ...(version === undefined ? {} : { headers: { 'if-match': `"${version}"` } }),
    })
    .catch((error: unknown) => {
      throw error instanceof Refusal ? explained(error, source, { queue, terminal }) : error;
    });
  terminal.show(written, () => {
    if (isCheck) return `${source.name} is a valid config of ${queue}; nothing was written.\n`;
    if (written.version === 1) return `Created the queue ${queue}.\n`;
    return `${queue} is now at version ${written.version}.\n`;
  });
}

/** Prints a table of errors for people; programs get all of them in the message. */
function explained(
  refusal: Refusal,
  source: ConfigFile,
  { queue, terminal: { err, json } }: Shows & { queue: string },
): Refusal {
  const { errors = [] } = refusal.extra;
  if (errors.length === 0) return refusal;
  // The name comes from the command line, not from a line of the file.
  const ofName = errors.find(({ pointer }) => pointer === '/queue');
  if (ofName && !('queue' in source.config)) {
    const message = harmless(ofName.message);
    return new Refusal(refusal.code, `"${queue}" is not a queue name: it ${message}.`);
  }
  const faults = errors.map(({ pointer, message }) => ({
    place: `${source.name}:${source.lineOf(pointer)}`,
    pointer: harmless(pointer === '' ? '(whole file)' : pointer),
    message: harmless(message),
  }));
  if (json) {
    const list = faults.map(({ place, pointer, message }) => `${place}: ${pointer} ${message}`);
    return new Refusal(refusal.code, list.join('; '), refusal.extra);
  }
  const rows = faults.map(({ place, pointer, message }) => [
    place,
    pointer,
    { text: message, tone: 'bad' as const },
  ]);
  err.write(renderTable(['', '', wrapped('')], rows, err));
  const count = faults.length === 1 ? '1 error' : `${faults.length} errors`;
  const what = refusal.code === 'INVALID_CONFIG' ? `${count} in ${source.name}` : refusal.detail;
  return new Refusal(refusal.code, `${what.replace(/\.$/, '')}; nothing was written.`);
}
