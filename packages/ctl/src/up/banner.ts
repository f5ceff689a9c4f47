import { existsSync } from 'node:fs';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { version } from '../version.js';
import type { Listener, Part } from './parts.js';

/** A part that runs. */
export interface Running {
  readonly part: Part;
  readonly listeners: readonly Listener[];
}

export interface Banner {
  readonly running: readonly Running[];
  readonly dataDir: string;
  /** Where the dashboard is, or the link that logs a browser in there. */
  readonly dashboard: string;
  readonly isLogin: boolean;
  /** False when nobody is asked for a token. */
  readonly hasAuth: boolean;
}

const firstThingsToTry = [
  ['status', 'all of it at a glance'],
  ['agent spawn "Say hello"', 'a first agent, where you are'],
  [`db put people ada '{"age": 36}'`, 'a first record in the database'],
];

/** What `ctl up` shows a person once everything is running. */
export function bannerFor(banner: Banner, sheet: Sheet): string {
  const { running, dataDir } = banner;
  const columns = [{ title: 'PART' }, { title: 'ADDRESS' }, { title: 'STATE' }];
  return [
    `${sheet.paint('strong', `Millrace ${version()}`)}  data in ${dataDir}\n`,
    renderTable(columns, running.flatMap(rowsOf), sheet),
    accessText(banner, sheet),
    `Try in another terminal:\n${renderTable(
      [{ title: '' }, { title: '' }],
      firstThingsToTry.map(([words = '', note = '']) => [`  ${ctl()} ${words}`, note]),
      sheet,
    )}`,
    'Ctrl-C stops everything.\n',
  ].join('\n');
}

function accessText({ dashboard, isLogin, hasAuth }: Banner, { paint }: Sheet): string {
  const warning = 'Authentication is off: every user of this machine has full access.';
  const off = hasAuth ? '' : `${paint('warn', warning)}\n`;
  if (!isLogin) return `Dashboard: ${dashboard}\n${off}`;
  return `Dashboard: ${dashboard}\nThe link works once, for 5 minutes; \`${ctl()} open\` makes another.\n`;
}

/** In a clone nobody has `ctl` on their PATH yet. */
function ctl(): string {
  return existsSync('bin/ctl') ? 'bin/ctl' : 'ctl';
}

function rowsOf({ part, listeners }: Running): Cell[][] {
  return listeners.map(({ url }, at) => [
    at === 0 ? part.title : '',
    url,
    { text: 'running', tone: 'ok' },
  ]);
}

/** The same for scripts: one line per listener, as every `serve` prints it. */
export function eventsFor({ part, listeners }: Running): string {
  return listeners
    .map(({ listener, url }) => ({ event: 'listening', component: part.name, listener, url }))
    .map((event) => `${JSON.stringify(event)}\n`)
    .join('');
}
