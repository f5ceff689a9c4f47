import { existsSync } from 'node:fs';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { version } from '../version.js';
import type { Part } from './parts.js';
import type { Supervised } from './supervisor.js';

const FIRST_THINGS_TO_TRY = [
  ['backend list', 'the coding agents of this machine'],
  ['queue list', 'the queues and what is in them'],
  [`db put people ada '{"age": 36}'`, 'a first record in the database'],
];

/** What `ctl up` shows a person once everything that can run is running. */
export function bannerFor(supervised: Supervised, dataDir: string, sheet: Sheet): string {
  const { running, missing } = supervised;
  const rows = [...running.keys(), ...missing].flatMap((part) => rowsOf(part, supervised));
  const columns = [{ title: 'PART' }, { title: 'ADDRESS' }, { title: 'STATE' }];
  return [
    `${sheet.paint('strong', `Millrace ${version()}`)}  data in ${dataDir}\n`,
    renderTable(columns, rows, sheet),
    `Try in another terminal:\n${renderTable(
      [{ title: '' }, { title: '' }],
      FIRST_THINGS_TO_TRY.map(([words = '', note = '']) => [`  ${ctl()} ${words}`, note]),
      sheet,
    )}`,
    running.size === 0
      ? 'No server is built yet, so nothing is listening. Ctrl-C ends this.\n'
      : 'Ctrl-C stops everything.\n',
  ].join('\n');
}

/** In a clone nobody has `ctl` on their PATH yet. */
function ctl(): string {
  return existsSync('bin/ctl') ? 'bin/ctl' : 'ctl';
}

function rowsOf(part: Part, { running }: Supervised): Cell[][] {
  const live = running.get(part);
  const state: Cell = live
    ? { text: 'running', tone: 'ok' }
    : { text: 'not built yet', tone: 'warn' };
  return (live?.listeners ?? part.addresses).map(({ url }, at) => [
    at === 0 ? part.title : '',
    live ? url : { text: url, tone: 'dim' },
    state,
  ]);
}

/** The same for scripts: one line per listener, as every `serve` prints it, then `ready`. */
export function eventsFor({ running, missing }: Supervised): string {
  const events = [
    ...[...running].flatMap(([{ name }, { listeners }]) =>
      listeners.map(({ listener, url }) => ({
        event: 'listening',
        component: name,
        listener,
        url,
      })),
    ),
    ...missing.map(({ name }) => ({ event: 'not_built', component: name })),
    { event: 'ready' },
  ];
  return events.map((event) => `${JSON.stringify(event)}\n`).join('');
}
