import type { CommandHelp } from '@millrace/contract/lists';
import type { TopCommand } from '../base/groups.js';
import { withDaemon } from '../daemon/api.js';
import { withTls } from '../db/connection.js';

const servers = ['db', 'queue', 'daemon'];
const dataOption = ['--data <dir>', 'Data directory of the servers'] as const;
const dataHereOption = ['--data <dir>', 'Data directory of the servers on this machine'] as const;

/** What every command of `ctl service` takes. */
const service = {
  arguments: [['[part]', 'one server; default: up, everything', ['up', ...servers]]],
  options: [
    [
      '--for <manager>',
      'Service manager (default: that of this machine)',
      { choices: ['systemd', 'launchd'] },
    ],
  ],
} as const satisfies Partial<CommandHelp>;

/** Commands that run the servers of this machine, and look after it. */
export const top: Readonly<Record<string, TopCommand>> = {
  up: {
    description:
      'Start the database, the queue and the daemon on this machine, each in its own ' +
      'process, print their addresses and run until Ctrl-C, which stops them gracefully; a ' +
      'second Ctrl-C kills them. A process that exits is restarted. The first run creates ' +
      'the tokens, which commands find by themselves, and the queue "agents", whose tasks the daemon ' +
      'runs. With a connectors.yaml in the data directory it also runs `ctl connect`. Prints a link that logs your browser in to the dashboard.',
    options: [
      ['--data <dir>', 'Data directory (default: your data directory)'],
      ['--listen <address>', 'Address of the daemon (default: 127.0.0.1:8765)'],
      ['--queue-listen <address>', 'Address of the queue (default: 127.0.0.1:8081)'],
      [
        '--queue-grpc <address>',
        'gRPC address of the queue (default: 127.0.0.1:8082, another port if that is in use)',
      ],
      ['--metrics-listen <address>', "Address of the queue's metrics (default: 127.0.0.1:9464)"],
      ['--db-grpc <address>', 'gRPC address of the database (default: 127.0.0.1:5433)'],
      ['--db-http <address>', 'REST address of the database (default: 127.0.0.1:8080)'],
      ['--no-auth', 'Require no token and no key, on loopback addresses only'],
      ['--no-upgrade', 'Refuse data that an older version has written'],
    ],
    examples: [
      ['ctl up', 'start everything; Ctrl-C stops it'],
      ['ctl up --data ./data', 'use another data directory'],
      ['ctl up --json', 'one line of JSON per event, for scripts'],
    ],
    exitCodes: {
      0: 'stopped cleanly by Ctrl-C or SIGTERM',
      1: 'a server could not start, or failed too often',
    },
    run: async () => (await import('../up/run-up.js')).runUp,
  },
  status: {
    description:
      'Show the status of the database, the queue and the daemon: whether and where each ' +
      'is running, how many tasks are pending, running and dead, and what the agents do. ' +
      'Servers on other machines are found by MILLRACE_DB_URL, MILLRACE_QUEUE_URL and ' +
      'MILLRACE_URL.',
    options: [dataHereOption],
    examples: [
      ['ctl status', 'is everything running?'],
      ['ctl status --json', 'for scripts'],
    ],
    exitCodes: { 0: 'all three are running', 1: 'at least one is not running, or failure' },
    isView: true,
    run: async () => (await import('../status/status-screen.js')).showStatus,
  },
  logs: {
    description:
      'Show the last log lines of the servers that `ctl up` runs or ran. With --json, each ' +
      'line as it was logged.',
    arguments: [['[part]', 'one server; default: all', servers]],
    options: [
      ['-f, --follow', 'Follow new lines until Ctrl-C'],
      ['-n, --lines <number>', 'Number of lines to start with', { default: '100' }],
      dataOption,
    ],
    examples: [
      ['ctl logs', 'the last 100 lines'],
      ['ctl logs queue -f', 'follow the queue'],
      ['ctl logs --json --lines 1000', 'for scripts'],
    ],
    run: async () => (await import('../running/show-logs.js')).showLogs,
  },
  restart: {
    description:
      'Restart the servers of a running `ctl up`, one after the other. Each finishes its work ' +
      'in progress first and keeps its address.',
    arguments: [['[part]', 'one server; default: all', servers]],
    options: [dataOption],
    examples: [
      ['ctl restart', 'all of them, for example after an upgrade'],
      ['ctl restart queue', 'after a change of queue.yaml'],
    ],
    run: async () => (await import('../running/stop-and-restart.js')).restart,
  },
  down: {
    description:
      'Stop a running `ctl up` with all its servers gracefully and wait until it has exited. ' +
      'Agents in terminals keep running.',
    options: [dataOption],
    examples: [
      ['ctl down', 'stop everything'],
      ['ctl down --data ./data', 'what runs on another data directory'],
    ],
    exitCodes: { 0: 'stopped, or nothing was running' },
    run: async () => (await import('../running/stop-and-restart.js')).stopAll,
  },
  service: {
    description:
      'Run Millrace as a service of your user with systemd (Linux) or launchd (macOS). For a ' +
      'service of the whole system see packaging/systemd in the repository.',
    examples: [
      ['ctl service install', 'start everything now and with every login'],
      ['ctl service status', 'is it running?'],
      ['ctl service uninstall', 'stop it and remove the service'],
    ],
    commands: {
      install: {
        ...service,
        summary: 'Install and start a service',
        description:
          'Write a service file, and start the service now and with every login. With --no-start, ' +
          'print the commands that start it.',
        options: [
          ...service.options,
          dataOption,
          ['--print', 'Print the file and write nothing'],
          ['--force', 'Overwrite a different service file'],
          ['--no-start', 'Write the file and start nothing'],
          ['--dry-run', 'Show what would be written and run, and do nothing'],
        ],
        examples: [
          ['ctl service install', 'everything, as `ctl up` runs it'],
          ['ctl service install queue --print', 'see the file of the queue alone'],
        ],
        run: async () => (await import('../service/service.js')).install,
      },
      uninstall: {
        ...service,
        summary: 'Stop and remove a service',
        description: 'Stop the service and remove its file. Data is not touched.',
        examples: [['ctl service uninstall', 'the service of everything']],
        run: async () => (await import('../service/service.js')).uninstall,
      },
      status: {
        ...service,
        summary: 'Show whether a service is installed and running',
        description: 'Show whether a service is installed and running.',
        examples: [
          ['ctl service status', 'the service of everything'],
          ['ctl service status daemon --json', 'for scripts'],
        ],
        exitCodes: {
          0: 'it is running',
          1: 'it is not running or not installed, or failure',
        },
        isView: true,
        run: async () => (await import('../service/service.js')).showService,
      },
    },
  },
  version: {
    description:
      'Show the version of this command, of Node and of every running server. `ctl --version` ' +
      'prints only the first.',
    options: [dataHereOption],
    examples: [
      ['ctl version', 'does everything run the same version?'],
      ['ctl version --json', 'for scripts'],
    ],
    run: async () => (await import('../running/show-version.js')).showVersion,
  },
  open: {
    connect: withDaemon,
    description:
      'Open the dashboard of the daemon in your browser with a login link that works ' +
      'once and expires after 5 minutes. Prints the link if no browser can be opened.',
    options: [['--print', 'Print the link and open nothing']],
    examples: [
      ['ctl open', 'in the browser of this machine'],
      ['ctl open --print', 'to open it yourself, for example through an SSH tunnel'],
    ],
    run: async () => (await import('../open/open.js')).openDashboard,
  },
  tui: {
    connect: (command) =>
      withDaemon(command)
        .option('--queue-url <url>', 'Address of the queue (default: $MILLRACE_QUEUE_URL)')
        .option(
          '--token-file <file>',
          'File with the bearer token of the queue (default: $MILLRACE_QUEUE_TOKEN)',
        ),
    description:
      'Show agents, their questions, queues, backends, spend and the inbox on the whole ' +
      'terminal, live. Enable and disable backends, answer questions, attach to agents, and ' +
      'pause and redrive queues. The last line shows the keys; q quits.',
    examples: [
      ['ctl tui', 'open the terminal dashboard'],
      ['ctl tui --url http://127.0.0.1:8765', 'of this daemon'],
    ],
    exitCodes: { 2: 'usage error, or not on a terminal' },
    run: async () => (await import('../tui/run-tui.js')).runTui,
  },
  connect: {
    connect: withTls,
    description:
      'Turn changes of the database into tasks of the queue until Ctrl-C. The file says which ' +
      'changes of which collection become tasks of which queue. Every change becomes exactly ' +
      'one task, also after a crash: positions are stored in the collection ' +
      'millrace_connectors of the database. The servers are found by MILLRACE_DB_URL, ' +
      'MILLRACE_DB_KEY, MILLRACE_QUEUE_URL and MILLRACE_QUEUE_TOKEN, or on this machine. ' +
      '`ctl up` runs the connectors.yaml of its data directory by itself.',
    options: [
      ['--config <file>', 'File with the connectors', { default: 'connectors.yaml' }],
      ['--check', 'Check the file and exit'],
      ['--metrics-listen <address>', 'Address of /metrics (default: any free port)'],
    ],
    examples: [
      ['ctl connect --config connectors.yaml', 'run the connectors of a file'],
      ['ctl connect --config connectors.yaml --check', 'only check the file'],
    ],
    exitCodes: {
      0: 'stopped cleanly by Ctrl-C or SIGTERM, or the file is valid',
      2: 'usage error, or a mistake in the file',
    },
    run: async () => (await import('../connect/run-connect.js')).runConnect,
  },
  mcp: {
    connect: withDaemon,
    description:
      'Serve the daemon to agents with the Model Context Protocol over stdin and stdout, ' +
      'until the client closes them. While the daemon is not running, its tools return an ' +
      'error.',
    examples: [
      ['ctl mcp', 'as the command of an MCP server in the settings of an agent'],
      ['ctl mcp --url http://10.0.0.5:8765', 'a daemon on another machine'],
    ],
    exitCodes: { 0: 'the client closed the connection' },
    run: async () => (await import('../mcp/stdio.js')).serveMcp,
  },
  packaging: {
    description:
      'Copy the files for operating Millrace: systemd units, Prometheus alerts, a Grafana dashboard, ' +
      'compose files, an image and Kubernetes manifests.',
    examples: [['ctl packaging copy ./packaging', 'all of them']],
    commands: {
      copy: {
        summary: 'Copy systemd units, alerts, Grafana, compose and Kubernetes files',
        description:
          'Copy the files into a directory, which is created if needed and must be empty.',
        arguments: [['<dir>', 'directory to create']],
        examples: [['ctl packaging copy ./packaging', 'all of them']],
        run: async () => (await import('../service/packaging.js')).copyTo,
      },
    },
  },
  doctor: {
    description:
      'Check Node, the data directory, the files with tokens, keys and secrets, the ' +
      'programs that Millrace calls, the ports it listens on, and queues without a worker. ' +
      'Explains how to fix each problem, and changes nothing.',
    options: [['--data <dir>', 'Check this data directory (default: your data directory)']],
    examples: [
      ['ctl doctor', 'check everything'],
      ['ctl doctor --data ./data', 'check another data directory'],
      ['ctl doctor --json', 'the same for scripts'],
    ],
    exitCodes: { 0: 'ready, perhaps with warnings', 1: 'something must be fixed first' },
    run: async () => (await import('../doctor/doctor.js')).runDoctor,
  },
  demo: {
    description:
      'Run an end-to-end demo in under a minute, without an account or a model: start ' +
      'everything on free ports in a temporary directory, queue work for a fake agent, let ' +
      'one task succeed and another fail and go to the dead-letter queue, redrive it to ' +
      'success, and clean up. Your data is not touched.',
    options: [['--keep', 'Keep it running at the end, until Ctrl-C']],
    examples: [
      ['ctl demo', 'watch it'],
      ['ctl demo --keep', 'explore it afterwards'],
      ['ctl demo --json', 'one line of JSON per event'],
    ],
    exitCodes: { 0: 'every step succeeded' },
    run: async () => (await import('../demo/demo.js')).runDemo,
  },
};
