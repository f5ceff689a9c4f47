import { commandName } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { version } from '../base/version.js';
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
  readonly found: Found;
}

/** What the machine has for agents. */
export interface Found {
  /** Installed coding-agent backends; undefined if the daemon did not answer. */
  readonly agents: readonly string[] | undefined;
  /** The default backend, if one is set. */
  readonly defaultAgent: string | undefined;
  readonly tmux: boolean;
  readonly gh: boolean;
}

/** Only commands that work on this machine. */
function firstThingsToTry({ agents = [], defaultAgent }: Found): [words: string, note: string][] {
  const [first] = agents;
  const choice = defaultAgent === undefined && agents.length > 1 ? ` --backend ${first}` : '';
  return [
    ['status', 'the status of all servers'],
    first === undefined
      ? ['demo', 'a task from submit to success, with a fake agent']
      : [`agent spawn "Say hello"${choice}`, 'a first agent in this directory'],
    [`db put people ada '{"age": 36}'`, 'a first record in the database'],
  ];
}

function foundText({ agents, tmux, gh }: Found): string {
  if (agents === undefined) return '';
  const clis = agents.length === 0 ? 'no coding agent' : agents.join(', ');
  const programs = `tmux: ${tmux ? 'yes' : 'no'}, gh: ${gh ? 'yes' : 'no'}`;
  return `Found: ${clis}; ${programs}. Details: ${commandName()} doctor\n`;
}

/** What `ctl up` prints once everything is running. */
export function bannerFor(banner: Banner, sheet: Sheet): string {
  const { running, dataDir } = banner;
  return [
    `${sheet.paint('strong', `Millrace ${version()}`)}  data in ${dataDir}\n`,
    renderTable(['SERVER', 'ADDRESS', 'STATE'], running.flatMap(rowsOf), sheet),
    accessText(banner, sheet) + foundText(banner.found),
    `Try in another terminal:\n${renderTable(
      ['', ''],
      firstThingsToTry(banner.found).map(([words, note]) => [`  ${commandName()} ${words}`, note]),
      sheet,
    )}`,
    `${npxText()}Ctrl-C stops everything.\n`,
  ].join('\n');
}

/** Texts and documentation say `ctl`, which npx does not put on the PATH. */
function npxText(): string {
  const name = commandName();
  if (!name.startsWith('npx ')) return '';
  return `Where the documentation says \`ctl\`, type \`${name}\`.\n`;
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
