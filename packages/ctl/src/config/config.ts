import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { renderTable, wrapped, type Cell } from '../render/table.js';
import { printable } from '../render/text.js';

type ConfigView = DaemonSchema<'ConfigView'>;
type ConfigEntry = DaemonSchema<'ConfigEntry'>;

export interface ConfigFlags extends DaemonFlags {
  config?: string;
}

export async function showConfig(
  key: string | undefined,
  flags: ConfigFlags,
  tools: Tools,
): Promise<void> {
  const { view, isLive } = await viewOf(flags, tools);
  const entries = key === undefined ? view.entries : entriesUnder(key, view.entries);
  const { out, err, json } = tools.terminal;
  if (json) {
    out.write(`${JSON.stringify({ ...view, entries }, null, 2)}\n`);
    return;
  }
  out.write(renderTable(['KEY', wrapped('VALUE'), 'SOURCE'], entries.map(rowOf), out));
  for (const warning of view.warnings) {
    err.write(`${err.paint('warn', 'Warning:')} ${printable(warning)}\n`);
  }
  if (!isLive) err.write('No daemon is running. These are the settings one would start with.\n');
}

/** Prints the value of one setting alone. */
export async function printSetting(key: string, flags: ConfigFlags, tools: Tools): Promise<void> {
  const { view } = await viewOf(flags, tools);
  const entry = entriesUnder(key, view.entries).find((each) => each.key === key);
  if (!entry) throw new UsageError(`"${key}" is a group. Show it with \`ctl config ${key}\`.`);
  const { value } = entry;
  const text = typeof value === 'string' ? printable(value) : JSON.stringify(value);
  tools.terminal.show(entry, `${text}\n`);
}

/** Settings of the running daemon, or those one would start with. */
async function viewOf(
  { config, ...flags }: ConfigFlags,
  tools: Tools,
): Promise<{ view: ConfigView; isLive: boolean }> {
  const { env } = tools.terminal;
  const local = async () => {
    const { localConfigView } = await import('./config-view.js');
    const { data } = flags;
    const given = { ...(config && { config }), ...(data && { data }) };
    return { view: localConfigView(given, env), isLive: false };
  };
  // --config reads that file and no running daemon.
  if (config !== undefined) return local();
  try {
    const api = await daemonApi(flags, tools);
    return { view: await api.call('getConfig'), isLive: true };
  } catch (error) {
    const isElsewhere =
      flags.url !== undefined || (flags.data === undefined && Boolean(env['MILLRACE_URL']));
    if (isElsewhere || !(error instanceof Refusal) || error.code !== 'UNAVAILABLE') throw error;
    return local();
  }
}

/** One setting, or those of a group: `tokens` has `tokens.warn`. */
function entriesUnder(key: string, entries: readonly ConfigEntry[]): ConfigEntry[] {
  const found = entries.filter((entry) => entry.key === key || entry.key.startsWith(`${key}.`));
  if (found.length > 0) return found;
  const keys = entries.map((entry) => entry.key);
  const groups = keys.flatMap((each) => (each.includes('.') ? [each.split('.')[0]!] : []));
  const names = [...keys, ...groups, 'get', 'set', 'edit'];
  const meant = suggestion(key, names) || '. List them all with `ctl config`.';
  throw new UsageError(`there is no setting "${key}"${meant}`);
}

function rowOf({ key, value, source, origin }: ConfigEntry): Cell[] {
  const from: Cell =
    source === 'default' ? { text: 'default', tone: 'dim' } : placeText(source, origin ?? source);
  return [key, valueText(value), from];
}

function placeText(source: ConfigEntry['source'], origin: string): string {
  return source === 'environment' ? `$${origin.replace(/^\$/, '')}` : origin;
}

function valueText(value: unknown): Cell {
  if (value === null) return { text: 'not set', tone: 'dim' };
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (value === '') return { text: '(empty)', tone: 'dim' };
  return typeof value === 'string' ? value : JSON.stringify(value);
}
