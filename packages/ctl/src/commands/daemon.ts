import type { TopCommand } from '../base/groups.js';
import { collect, type Commands, type Connect } from '../base/declared.js';
import type { ServeFlags } from '../base/serve-command.js';
import { daemonServer } from '../daemon/server.js';

/** Omits long defaults, such as URLs; `ctl config` shows them. */
function defaultText({ kind, default: text = '' }: { kind: string; default?: string }): string {
  if (text === '[]' || text.length > 24) return '';
  return kind === 'switch' ? (text === 'true' ? 'on' : text && 'off') : text;
}

async function settingsOf({ providerUrl, ...flags }: ServeFlags): Promise<ServeFlags> {
  const { providerFlags } = await import('../daemon/provider-flags.js');
  return { ...flags, ...providerFlags(Array.isArray(providerUrl) ? providerUrl : []) };
}

const withPlace: Connect = (command) =>
  command
    .option('--read-only', 'The read-only token')
    .option('--data <dir>', 'Data directory of the daemon (default: from its settings)')
    .option('--config <file>', 'Config file of the daemon, for its data_dir');

const commands: Commands = {
  status: {
    summary: 'Show whether a daemon is running',
    description: 'Show whether a daemon is running, where, and whether it accepts your token.',
    examples: [
      ['ctl daemon status', 'the daemon of this machine'],
      ['ctl daemon status --url http://10.0.0.5:8765', 'another daemon'],
    ],
    exitCodes: { 0: 'it is running', 1: 'it is not running, or failure' },
    isView: true,
    run: async () => (await import('../daemon/status.js')).showStatus,
  },
  backup: {
    summary: 'Back up a running daemon',
    description:
      'Write a backup of the database of a running daemon into a directory: sessions, pipelines, ' +
      'plans, questions, spend and the inbox. The first one of a directory is full. Later ones are ' +
      'incremental: what was committed since the last one, if the log still has all of it. Every ' +
      'file is checked before it gets its name. Worktrees, logs of agents and token files are no ' +
      'part of it.',
    arguments: [['<dir>', 'directory of the backups']],
    options: [['--full', 'Write a full backup although there are others']],
    examples: [['ctl daemon backup ./backups', 'once a day, for instance']],
    run: async () => (await import('../daemon/backing-up.js')).backUpDaemon,
  },
  restore: {
    connect: null,
    summary: 'Restore a daemon from backups',
    description:
      'Restore the backups of a directory into a data directory that has no daemon yet. With --to, ' +
      'leave out what was committed later. Everything is checked before anything is written, and ' +
      'verified at the end.',
    arguments: [['<dir>', 'directory of the backups']],
    options: [
      ['--data <dir>', 'Data directory to restore into', { required: true }],
      ['--to <target>', 'Commit number or RFC 3339 time to restore to, inclusive'],
    ],
    examples: [
      ['ctl daemon restore ./backups --data ./restored', 'into a new directory'],
      ['ctl daemon restore ./backups --data ./restored --to 2026-05-04T09:30:00Z', 'as of a time'],
    ],
    exitCodes: { 1: 'no backups, damaged ones, a directory in use, or failure' },
    run: async () => (await import('../daemon/backing-up.js')).restoreDaemon,
  },
  token: {
    connect: withPlace,
    summary: 'Manage the bearer token: show, create, rotate',
    description:
      'Manage the tokens of the daemon. Its first start creates one. Works on the token ' +
      'files in the data directory, whether a daemon is running or not; a running daemon ' +
      'reads a changed file at its next request.',
    examples: [
      ['ctl daemon token generate', 'create one'],
      ['ctl daemon token show', 'to copy it into another program'],
      ['ctl daemon token rotate', 'if it has leaked'],
    ],
    commands: {
      show: {
        summary: 'Show the token',
        description: 'Show the token of the daemon and where it comes from.',
        examples: [
          ['ctl daemon token show', 'the token alone on stdout'],
          ['ctl daemon token show --read-only', 'the read-only token'],
        ],
        exitCodes: { 1: 'there is none, or failure' },
        run: async () => (await import('../daemon/token.js')).showToken,
      },
      generate: {
        summary: 'Create a token if there is none',
        description:
          'Create a token, write it to a file that only you can read, and print it. Fails if ' +
          'there is one already; replace that with `ctl daemon token rotate`.',
        examples: [
          ['ctl daemon token generate', 'before listening on the network'],
          ['ctl daemon token generate --read-only', 'for a read-only dashboard'],
        ],
        exitCodes: { 1: 'there is one already, or failure' },
        run: async () => (await import('../daemon/token.js')).generateToken,
      },
      rotate: {
        summary: 'Replace the token with a new one',
        description: 'Replace the token with a new one. The old one is invalid at once.',
        examples: [
          ['ctl daemon token rotate', 'then update the programs that use it'],
          ['ctl daemon token rotate --read-only', 'the read-only token'],
        ],
        exitCodes: { 1: 'there is none to replace, or failure' },
        run: async () => (await import('../daemon/token.js')).rotateToken,
      },
    },
  },
  install: {
    summary: 'Install the daemon as a service',
    description:
      'Write a user service file with which systemd (Linux) or launchd (macOS) runs the ' +
      'daemon, and print how to start it. Starts nothing by itself.',
    options: [
      ['--print', 'Print the file and write nothing'],
      [
        '--for <manager>',
        'Service manager (default: that of this machine)',
        { choices: ['systemd', 'launchd'] },
      ],
      ['--force', 'Overwrite a different service file'],
      ['--config <file>', 'Config file of the daemon'],
      ['--data <dir>', 'Data directory of the daemon'],
      ['--listen <address>', 'Address the daemon listens on'],
    ],
    examples: [
      ['ctl daemon install', 'then run the commands it prints'],
      ['ctl daemon install --print', 'see the file first'],
      ['ctl daemon install --config ~/millrace.yaml', 'with a config file'],
    ],
    run: async () => (await import('../daemon/install.js')).installService,
    connect: null,
  },
};

export const top: Readonly<Record<string, TopCommand>> = {
  daemon: {
    server: daemonServer,
    description:
      'Run the daemon and manage its token. Other commands find it by --url, by ' +
      'MILLRACE_URL, or by the address in its data directory.',
    examples: [
      ['ctl daemon serve', 'run it here'],
      ['ctl daemon status', 'check whether it is running'],
      ['ctl daemon install', 'run it as a service'],
    ],
    serve: {
      summary: 'Run the daemon',
      description:
        'Serve the REST API, MCP and the dashboard until Ctrl-C, which waits for requests in ' +
        'flight. Callers need a token, which the first start writes to daemon.token in the ' +
        'data directory; commands find it by themselves. Every setting can come from a file ' +
        '(--config config.yaml), a variable or a flag. Prints one line of JSON when it is ' +
        'ready; logs go to stderr.',
      examples: [
        ['ctl daemon serve', 'on 127.0.0.1:8765'],
        ['ctl daemon serve --config config.yaml --data ./data', 'with a config file'],
        ['ctl daemon serve --listen 127.0.0.1:0', 'on any free port'],
      ],
      config: async () => (await import('@millrace/daemon/config')).daemonConfig,
      serve: async () => (await import('@millrace/daemon/serve')).runDaemon,
      defaultText,
      noAuth: 'Require no token, on loopback only (the same as --auth none)',
      hasAliases: true,
      minWidthToWrap: 30,
      extend: (serve) =>
        serve
          .option(
            '--provider-url <provider=url>',
            'Query this URL for usage: claude=http://..., cursor=..., gemini=...; all three ' +
              'without a name',
            collect,
          )
          .section('Switches:', [
            ['--savings, --savings on', 'turn it on'],
            ['--savings off, --no-savings', 'turn it off'],
          ]),
      settingsOf,
    },
    commands: commands,
  },
};
