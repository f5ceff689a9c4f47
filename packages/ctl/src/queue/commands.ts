import * as queueActions from '@millrace/contract/lists/queue-commands';
import type { QueueOperationId } from '@millrace/contract/queue';
import { withCredentials } from '../base/common-options.js';
import type { Commands, Server } from '../base/declared.js';
import type { OperationRequest } from '../base/run-operation.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, withServer } from './api.js';
import { backupCommands } from './backup-commands.js';
import { deadActions, taskCommands } from './task-commands.js';

const { auditList, deadCommands, jobCommands, queueCommands, scheduleCommands } = queueActions;
const { list: scheduleList, ...scheduleChanges } = scheduleCommands.commands;

/** Calls operations of the queue for declared commands. */
export function queueServer(tools: Tools): Server {
  return {
    connect: withQueue,
    async call(command, args, flags) {
      const { runOperation } = await import('../base/run-operation.js');
      const api = queueApi(flags, tools);
      const call = async (operation: string, { path, ...request }: OperationRequest) =>
        (await api.call(operation as QueueOperationId, { ...path, ...request })).body;
      await runOperation(command, { args, flags }, call, tools);
    },
  };
}

const withTokensFile = withCredentials('tokens', 'Tokens file of the server');
const withSecretsFile = withCredentials('secrets', 'Secrets file of the server');

/** Every command of `ctl queue` but `serve`. */
export const commands: Commands = {
  token: {
    connect: withTokensFile,
    summary: 'Manage bearer tokens: create, list, revoke',
    description:
      'Edit the tokens file of a server. A running server reloads it within seconds, or at ' +
      'once on SIGHUP.',
    examples: [
      [
        "ctl queue token new --principal me --grant '*:admin' --tokens-file tokens.yaml",
        'a token that may do everything',
      ],
      ['ctl queue token list --tokens-file tokens.yaml', 'who has access'],
      ['ctl queue token revoke 0abc --tokens-file tokens.yaml', 'revoke it'],
    ],
    commands: {
      new: {
        summary: 'Create a token and show it once',
        description:
          'Create a token and print it with its entry for the tokens file; with ' +
          '--tokens-file, add the entry to that file, creating it if necessary. The file ' +
          'contains only a hash, so the token cannot be shown again.',
        options: [
          [
            '--principal <name>',
            'Principal of the token, as in the audit log (default: your user name)',
          ],
          [
            '--grant <queues:role...>',
            'What it may do: mail:submitter, mail:worker, payments.*:operator, *:admin (operator ' +
              'includes submitter and worker, admin all); required with --tokens-file',
          ],
          ['--id <id>', 'Id of the token, not secret (default: generated)'],
          ['--expires <when>', 'When it expires: after 90d, or at 2030-01-31T00:00:00Z'],
        ],
        examples: [
          [
            "ctl queue token new --principal shop --grant 'payments.*:submitter'",
            'print a token and its entry',
          ],
          [
            "ctl queue token new --principal me --grant '*:admin' --tokens-file tokens.yaml",
            'add it to a file',
          ],
        ],
        run: async () => (await import('./tokens.js')).newQueueToken,
      },
      list: {
        summary: 'List tokens',
        description: 'List the tokens of the file: their principals, grants and expiry.',
        examples: [
          ['ctl queue token list --tokens-file tokens.yaml', 'as a table'],
          ['ctl queue token list --config queue.yaml --json', 'for scripts'],
        ],
        isView: true,
        run: async () => (await import('./tokens.js')).listTokens,
      },
      revoke: {
        summary: 'Revoke a token',
        description: 'Remove a token from the file. Requests in flight finish.',
        arguments: [['<id>', 'id of the token: the part between mr_ and the next underscore']],
        examples: [['ctl queue token revoke 0abc --tokens-file tokens.yaml', 'by its id']],
        exitCodes: { 1: 'no such token, or failure' },
        run: async () => (await import('./tokens.js')).revokeToken,
      },
    },
  },
  secret: {
    connect: withSecretsFile,
    summary: 'Manage the secrets of callbacks: add, list, remove',
    description:
      'Edit the secrets file of a server on this machine. A running server reloads it within ' +
      'seconds, or at once on SIGHUP. Without a file, commands edit that of `ctl up`.',
    examples: [
      ['ctl queue secret add mail-signing --queues mail', 'a new signing secret'],
      ['ctl queue secret list', 'names and queues, never values'],
      ['ctl queue secret remove mail-signing', 'queues that name it are held'],
    ],
    commands: {
      add: {
        summary: 'Add a secret',
        description:
          'Add a secret with the value from stdin. Without one, generate a signing secret ' +
          '(whsec_...) and show it once.',
        arguments: [['<name>', 'name of the secret, for secret_ref and secret_refs of a config']],
        options: [
          ['--queues <glob...>', "Queues that may use it: mail, 'payments.*' (default: all)"],
        ],
        examples: [
          ['ctl queue secret add mail-signing --queues mail', 'generate one'],
          ['ctl queue secret add mail-token < token.txt', 'from a file'],
        ],
        run: async () => (await import('./secrets.js')).addSecret,
      },
      list: {
        summary: 'List secrets',
        description: 'List the names of the secrets and the queues that may use them.',
        examples: [
          ['ctl queue secret list --secrets-file secrets.yaml', 'as a table'],
          ['ctl queue secret list --json', 'for scripts'],
        ],
        isView: true,
        run: async () => (await import('./secrets.js')).listSecrets,
      },
      remove: {
        summary: 'Remove a secret',
        description: 'Remove a secret from the file. Queues whose config names it are held.',
        arguments: [['<name>', 'name of the secret']],
        examples: [['ctl queue secret remove mail-signing', 'by its name']],
        exitCodes: { 1: 'no such secret, or failure' },
        run: async () => (await import('./secrets.js')).removeSecret,
      },
    },
  },
  create: {
    summary: 'Create a queue',
    description:
      'Create a queue with a minimal config: --pull for workers, or --callback-url. If the ' +
      'server runs on this machine and does not allow the URL yet, add it to the allowlist in ' +
      'the config file of the server, which reloads it.',
    arguments: [['<queue>', 'name of the queue']],
    options: [
      [
        '--callback-url <url>',
        'Callback that the server calls for each task; http, https, grpc or grpcs',
      ],
      ['--pull', 'Let workers ask for tasks'],
      ['--config <file>', 'Config file of the server (default: that of `ctl up`)'],
      ['--server <url>', 'The former name of --url'],
    ],
    examples: [
      ['ctl queue create mail --pull', 'for `ctl queue work mail` and SDK workers'],
      ['ctl queue create mail --callback-url http://127.0.0.1:9000/run', 'with a callback'],
    ],
    exitCodes: { 1: 'it exists, or failure' },
    run: async () => (await import('./creating.js')).createQueue,
  },
  config: {
    summary: 'Read and write the config of a queue',
    description:
      'Read and write the config of a queue: its callback, retries and limits. Writing the ' +
      'config of a missing queue creates the queue.',
    examples: [
      ['ctl queue config set mail mail.yaml', 'create or change a queue'],
      ['ctl queue config get mail', 'every setting, with its defaults'],
    ],
    commands: {
      get: {
        summary: 'Show the config of a queue',
        description:
          'Show the whole config as JSON, which is also YAML: edit it and pass it to `config ' +
          'set`. Its version then protects it against concurrent changes.',
        arguments: [['<queue>', 'name of the queue']],
        options: [
          ['--bare', 'Omit name, version, times and pause, to copy it to another queue or server'],
        ],
        examples: [
          ['ctl queue config get mail > mail.json', 'to edit it'],
          ['ctl queue config get mail --bare', 'to copy it'],
        ],
        run: async () => (await import('./configs.js')).showConfig,
      },
      set: {
        summary: 'Create a queue, or replace its config',
        description:
          'Write the whole config: settings missing from the file return to their defaults. ' +
          'Errors name the line and the JSON pointer, and nothing is written.',
        arguments: [
          ['<queue>', 'name of the queue'],
          ['<file>', 'YAML or JSON; - for stdin'],
        ],
        options: [
          ['--validate-only', 'Validate and write nothing'],
          ['--if-version <number>', 'Write only if the config still has this version'],
        ],
        examples: [
          ['ctl queue config set mail mail.yaml', 'from a file'],
          ['ctl queue config set mail mail.yaml --validate-only', 'is it valid?'],
          [
            'ctl queue config set mail - --if-version 3 < mail.json',
            'unless somebody else changed it first',
          ],
        ],
        exitCodes: {
          1: 'refused by the server, or failure',
          2: 'the file cannot be read as YAML, or usage error',
        },
        run: async () => (await import('./configs.js')).writeConfig,
      },
    },
  },
  test: queueCommands.test,
  ...taskCommands,
  list: queueCommands.list,
  stats: queueCommands.stats,
  watch: {
    summary: 'Watch queues live',
    description:
      'Show the queues, redrawn every second until Ctrl-C. The rate is callbacks per ' +
      'second, from the metrics listener of the server; without metrics it is the growth ' +
      'of the backlog per second. Without a terminal, print one table, or with --json one ' +
      'line per interval.',
    arguments: [['[queues...]', 'only these (default: all that you administer)']],
    options: [
      ['--interval <duration>', 'Refresh interval (default: 1s)'],
      ['--count <number>', 'Exit after this many refreshes'],
      ['--metrics-url <url>', 'Metrics listener of the server'],
    ],
    examples: [
      ['ctl queue watch', 'all of them'],
      ['ctl queue watch mail --interval 5s', 'one, every five seconds'],
      ['ctl queue watch --json --count 60', 'a minute, for scripts'],
    ],
    run: async () => (await import('./watching.js')).watchQueues,
  },
  top: {
    summary: 'Show rates and latencies of queues live',
    description:
      'Show throughput, failures, waiting and run times of queues over the last minute, redrawn ' +
      'every two seconds until Ctrl-C; the bars show the throughput of the last ten minutes. ' +
      'Without a terminal, print one table, or with --json one line per interval.',
    arguments: [['[queues...]', 'only these (default: all that you administer)']],
    options: [
      ['--interval <duration>', 'Refresh interval (default: 2s)'],
      ['--count <number>', 'Exit after this many refreshes'],
    ],
    examples: [
      ['ctl queue top', 'all of them'],
      ['ctl queue top mail --interval 10s', 'one, every ten seconds'],
      ['ctl queue top --json --count 1', 'for scripts'],
    ],
    run: async () => (await import('./top.js')).showTop,
  },
  dlq: deadCommands,
  ...deadActions,
  job: jobCommands,
  schedule: {
    ...scheduleCommands,
    commands: {
      list: scheduleList,
      get: {
        summary: 'Show a schedule',
        description: 'Show a schedule: its times, its settings, and its task with the payload.',
        arguments: [
          ['<queue>', 'name of the queue'],
          ['<name>', 'name of the schedule'],
        ],
        examples: [
          ['ctl queue schedule get mail digest', 'for people'],
          ['ctl queue schedule get mail digest --json', 'with the whole payload, as base64'],
        ],
        isView: true,
        run: async () => (await import('./schedules.js')).showSchedule,
      },
      set: {
        summary: 'Create a schedule, or replace it',
        description:
          'Write a schedule from a file, or from --cron or --every with --handler. Settings that ' +
          'are missing return to their defaults.',
        arguments: [
          ['<queue>', 'name of the queue'],
          ['<name>', 'name of the schedule'],
          ['[file]', 'YAML or JSON; - for stdin'],
        ],
        options: [
          ['--cron <expression>', 'Minute, hour, day, month, weekday: "*/5 * * * *"'],
          ['--every <duration>', 'Interval, at least 1s: 30s, 5m'],
          ['--timezone <zone>', 'Time zone of --cron: Europe/Berlin (default: UTC)'],
          ['--handler <handler>', 'Handler of the task'],
          ['--payload <json>', 'Payload of the task, as JSON'],
          ['--overlap <policy>', 'While an earlier task is unfinished: skip or allow'],
          ['--catch-up <policy>', 'For runs missed while no server ran: none, last or all'],
          ['--jitter <duration>', 'Delay each task by chance, at most this long'],
          ['--description <text>', 'What it is for'],
        ],
        examples: [
          ['ctl queue schedule set mail digest digest.yaml', 'from a file'],
          ["ctl queue schedule set mail digest --cron '0 9 * * *' --handler digest", 'daily'],
          ['ctl queue schedule set mail poll --every 30s --handler mail.poll', 'every 30 s'],
        ],
        run: async () => (await import('./schedules.js')).setSchedule,
      },
      ...scheduleChanges,
    },
  },
  pause: queueCommands.pause,
  resume: queueCommands.resume,
  work: {
    summary: 'Run a command for each task of a pull queue',
    description:
      'Claim tasks of a pull queue and run a command for each, until Ctrl-C, which waits for ' +
      'running commands. The command gets the payload on stdin and the fields of the task as ' +
      'MILLRACE_TASK_ID, MILLRACE_TASK_HANDLER_REF, MILLRACE_TASK_ATTEMPT and so on. A single ' +
      'word is run by the shell.',
    arguments: [
      ['<queue>', 'name of the queue'],
      ['<command...>', 'the command, after --'],
    ],
    options: [
      ['--concurrency <number>', 'Commands that run at the same time (default: 1)'],
      ['--lease <duration>', 'How long a lost worker holds a task (default: 30s)'],
      ['--handler <ref...>', 'Claim only tasks of these handlers'],
      ['--label <label...>', 'Claim tasks with these labels too'],
      ['--name <name>', 'Name of the worker (default: host name and process id)'],
    ],
    examples: [
      ['ctl queue work mail -- ./send-mail.sh', 'one task at a time'],
      [`ctl queue work mail --concurrency 4 -- 'jq .to | xargs notify'`, 'by the shell'],
    ],
    exitCodes: { 0: 'stopped by Ctrl-C or SIGTERM' },
    usage: '[options] <queue> -- <command...>',
    section: [
      'Exit codes of the command:',
      [
        ['0', 'the task is completed'],
        ['75', 'the task is retried by the policy of the queue'],
        ['others', 'the task fails and is not retried'],
      ],
    ],
    run: async () => (await import('./working.js')).work,
  },
  workers: queueCommands.workers,
  delete: queueCommands.delete,
  audit: {
    summary: 'Read and verify the audit log',
    description:
      'Read and verify the audit log. It records every redrive, purge, pause, resume, ' +
      'config write and deletion of a queue. Each record carries the hash of the one ' +
      'before it, so that a change, removal or insertion is detected.',
    examples: [
      ['ctl queue audit list --queue mail', 'who did what'],
      ['ctl queue audit verify', 'is it intact?'],
    ],
    commands: {
      list: auditList,
      verify: {
        summary: 'Verify the hash chain of the audit log',
        description:
          'Compute every hash of the audit log again and report the first record that does not ' +
          'match. Reads from a server, which needs a token with the grant *:admin, or from a ' +
          'data directory that no server has open. Store the last hash elsewhere to detect a ' +
          'truncated log.',
        connect: withServer,
        options: [['--data <dir>', 'Data directory to read, instead of a server']],
        examples: [
          ['ctl queue audit verify', 'from the server'],
          ['ctl queue audit verify --data ./data', 'from its data directory'],
        ],
        exitCodes: { 0: 'the log is intact', 1: 'a record is broken, or failure' },
        run: async () => (await import('./audit-verify.js')).verifyAudit,
      },
    },
  },
  ...backupCommands,
  migrate: {
    summary: 'Move all tasks to PostgreSQL, or back',
    description:
      'Move every queue, task and audit record from the embedded store of a data directory ' +
      'to a PostgreSQL database, or back, and compare the two at the end. Stop the servers ' +
      'first. The target must be empty. If it is interrupted, run it again to resume; ' +
      'until it has finished no server starts on the target. The source does not change.',
    options: [
      ['--from <storage>', 'embedded, or postgres://user@host/db', { required: true }],
      [
        '--to <storage>',
        'The other store: postgres://user@host/db, or embedded',
        { required: true },
      ],
      ['--data <dir>', 'Data directory of the embedded store (default: ./data)'],
    ],
    examples: [
      ['ctl queue migrate --from embedded --to postgres://queue@db/queue', 'from ./data'],
      ['ctl queue migrate --from postgres://queue@db/queue --to embedded --data ./new', 'and back'],
    ],
    exitCodes: {
      0: 'everything was moved and verified',
      1: 'PostgreSQL is not available, or another failure: run it again',
      2: 'the target is not empty, the source changed, or usage error',
    },
    run: async () => (await import('./migrate.js')).migrate,
    connect: null,
  },
};
