import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { version } from '../version.js';
import type { Listener, Part } from './parts.js';

/** A running server. */
export interface Running {
  readonly part: Part;
  readonly listeners: readonly Listener[];
}

export interface Banner {
  readonly running: readonly Running[];
  readonly dataDir: string;
  /** URL of the dashboard, or a login link. */
  readonly dashboard: string;
  readonly isLogin: boolean;
  /** False if no token is required. */
  readonly hasAuth: boolean;
}

const firstThingsToTry = [
  ['status', 'the status of all servers'],
  ['agent spawn "Say hello"', 'a first agent in this directory'],
  [`db put people ada '{"age": 36}'`, 'a first record in the database'],
];

/** What `ctl up` prints once everything is running. */
export function bannerFor(banner: Banner, sheet: Sheet): string {
  const { running, dataDir } = banner;
  const columns = [{ title: 'SERVER' }, { title: 'ADDRESS' }, { title: 'STATE' }];
  return [
    `${sheet.paint('strong', `Millrace ${version()}`)}  data in ${dataDir}\n`,
    renderTable(columns, running.flatMap(rowsOf), sheet),
    accessText(banner, sheet),
    `Try in another terminal:\n${renderTable(
      [{ title: '' }, { title: '' }],
      firstThingsToTry.map(([words = '', note = '']) => [`  ${commandName()} ${words}`, note]),
      sheet,
    )}`,
    'Ctrl-C stops everything.\n',
  ].join('\n');
}

function accessText({ dashboard, isLogin, hasAuth }: Banner, { paint }: Sheet): string {
  const warning = 'Authentication is off: every user of this machine has full access.';
  const off = hasAuth ? '' : `${paint('warn', warning)}\n`;
  if (!isLogin) return `Dashboard: ${dashboard}\n${off}`;
  return (
    `Dashboard: ${dashboard}\nThe link works once and expires after 5 minutes. Get another ` +
    `with \`${commandName()} open\`.\n`
  );
}

/** The command as the user types it: in a clone and with npx it is not on the PATH. */
export function commandName(
  script = process.argv[1] ?? '',
  env: Readonly<Record<string, string | undefined>> = process.env,
  directory = '.',
): string {
  if (existsSync(join(directory, 'bin', 'ctl'))) return 'bin/ctl';
  const name = basename(script).startsWith('millrace') ? 'millrace' : 'ctl';
  return env['npm_command'] === 'exec' ? `npx ${name}` : name;
}

function rowsOf({ part, listeners }: Running): Cell[][] {
  return listeners.map(({ url }, at) => [
    at === 0 ? part.title : '',
    url,
    { text: 'running', tone: 'ok' },
  ]);
}

/** For scripts: one line per listener, as every `serve` prints it. */
export function eventsFor({ part, listeners }: Running): string {
  return listeners
    .map(({ listener, url }) => ({ event: 'listening', component: part.name, listener, url }))
    .map((event) => `${JSON.stringify(event)}\n`)
    .join('');
}
