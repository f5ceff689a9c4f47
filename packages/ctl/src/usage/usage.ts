import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemonApi, otherVersion, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { humanAge, humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { bar } from '../render/figures.js';
import type { Tone } from '../render/paint.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { printable, wrap } from '../render/text.js';

type UsageDocument = DaemonSchema<'UsageDocument'>;

/** Failures to reach a provider; everything else is a valid result. */
const troubles = new Set(['unavailable', 'timeout', 'error']);

export async function showUsage(
  { refresh = false, ...flags }: DaemonFlags & { refresh?: boolean },
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const document = await api.call('getUsage', { query: refresh ? { refresh } : {} });
  if (!isUsageDocument(document)) throw otherVersion(api, 'usage document of version 1');
  tools.terminal.show(document, (out) => usageScreen(document, out));
  if (document.backends.some(({ status }) => troubles.has(status))) tools.exitWith(2);
}

function isUsageDocument(value: unknown): value is UsageDocument {
  return (
    typeof value === 'object' &&
    value !== null &&
    'schema_version' in value &&
    value.schema_version === 1 &&
    'backends' in value &&
    Array.isArray(value.backends)
  );
}

type BackendUsage = DaemonSchema<'BackendUsage'>;
type UsageLimit = DaemonSchema<'UsageLimit'>;

const tones: Readonly<Record<BackendUsage['status'], Tone>> = {
  ok: 'ok',
  rate_limited: 'bad',
  unsupported: 'dim',
  unauthenticated: 'warn',
  unavailable: 'bad',
  timeout: 'bad',
  error: 'bad',
  not_installed: 'dim',
};

/** Minimum width for a bar beside the figure. */
const wideColumns = 100;

/** A row for each usage window, then why something is unknown. */
export function usageScreen(document: UsageDocument, sheet: Sheet): string {
  const { backends } = document;
  if (backends.length === 0) {
    return asTyped(
      'No backend has the tier subscription. Set it with `ctl backend tier <id> subscription`.\n',
    );
  }
  const now = Date.parse(document.generated_at);
  const isWide = sheet.columns >= wideColumns;
  const titles = ['BACKEND', 'STATUS', 'WINDOW', 'USED', ...(isWide ? [''] : []), 'RESETS'];
  const rows = backends.flatMap((backend) => rowsOf(backend, now, isWide));
  const table = renderTable(titles, rows, sheet);
  const forecasts = backends.flatMap(({ id, usage }) =>
    usage.flatMap((limit) => forecastOf(id, limit)),
  );
  const notes = backends.flatMap((backend) => noteOf(backend, sheet));
  return table + forecasts.join('') + notes.join('');
}

/** Only when the window is full before it resets. */
function forecastOf(backend: string, { scope, forecast }: UsageLimit): string[] {
  if (!forecast) return [];
  const at = new Date(forecast.full_at);
  const time = `${String(at.getHours()).padStart(2, '0')}:${String(at.getMinutes()).padStart(2, '0')}`;
  return [`${backend}: ${scope} full at ${time} at this rate.\n`];
}

function rowsOf(backend: BackendUsage, now: number, isWide: boolean): Cell[][] {
  const { id, status, usage, last_good: lastGood } = backend;
  const head: Cell[] = [id, { text: status, tone: tones[status] }];
  const rows = usage.map((limit) => limitRow(limit, now, isWide));
  const shown = rows.length === 0 ? [['-', '', ...(isWide ? [''] : []), '']] : rows;
  const whole = shown.map((row, at): Cell[] => (at === 0 ? [...head, ...row] : ['', '', ...row]));
  if (!lastGood) return whole;
  const seen = humanAge(Date.parse(lastGood.observed_at), now);
  const earlier = lastGood.usage.map((limit): Cell[] => {
    const cells = limitRow(limit, now, isWide).map(dimmed);
    return ['', dimmed(`seen ${seen}`), ...cells];
  });
  return [...whole, ...earlier];
}

function limitRow(limit: UsageLimit, now: number, isWide: boolean): Cell[] {
  const { label, used_percent: used, resets_at: at } = limit;
  const figure: Cell =
    used === null ? dimmed('unknown') : { text: `${shortened(used)}%`, tone: toneOf(used) };
  const resets = at === null ? dimmed('unknown') : resetText(Date.parse(at), now);
  return [label, figure, ...(isWide ? [barOf(used)] : []), resets];
}

function barOf(used: number | null): Cell {
  return used === null ? '' : { text: bar(used / 100), tone: toneOf(used) };
}

function toneOf(used: number): Tone {
  if (used >= 100) return 'bad';
  return used >= 80 ? 'warn' : 'ok';
}

function resetText(at: number, now: number): Cell {
  return at <= now ? dimmed('due') : `in ${humanDuration(at - now)}`;
}

/** At most one decimal. Shows 100 only for exactly 100. */
function shortened(percent: number): string {
  const cut = percent < 100 ? Math.min(percent, 99.9) : percent;
  return String(Math.round(cut * 10) / 10);
}

function noteOf({ id, error }: BackendUsage, sheet: Sheet): string[] {
  if (error === undefined) return [];
  const lines = wrap(printable(`${id}: ${error}.`), Math.min(sheet.columns, 100));
  return lines.map((line) => `${sheet.paint('dim', line)}\n`);
}

function dimmed(cell: Cell): Cell {
  return { text: typeof cell === 'object' ? cell.text : String(cell), tone: 'dim' };
}
