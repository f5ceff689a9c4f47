import type { GroupEntry } from './base/groups.js';

/**
 * Every group of commands, in the order of `ctl help`.
 *
 * This list is all that is read when `ctl` starts; the file of a group is loaded when the group is
 * used. To add `ctl queue serve`:
 *
 * 1. add `{ name: 'queue', summary: '...', load: () => import('./commands/queue.js') }` below;
 * 2. in `commands/queue.ts`, export `build(queue, tools)` and declare the subcommands:
 *
 *        queue.description('...').example('ctl queue list', '...');
 *        addCommands(queue, { list: queueCommands.list, watch: {
 *          summary: '...', description: '...', options: [['--interval <duration>', '...']],
 *          examples: [['ctl queue watch', '...']],
 *          run: async (flags) => (await import('../queue/watching.js')).watchQueues(flags, tools),
 *        } }, tools, queueServer(tools));
 *
 *    A command that calls one operation and shows its response is declared beside the contract, in
 *    `contract/src/lists`, together with the columns of its list. A group that is itself a command
 *    sets an action on `queue`.
 * 3. import what is heavy inside `run`, so that `--help` and completion stay quick. Flags that
 *    are heavy to know, as those of a server are, may be declared only when `tools.words` names
 *    the command or another group, which is how help and completion ask for everything.
 *
 * The tests walk every command and demand a description and an example; help, `--json` on help,
 * "did you mean" and the completion scripts follow from what is declared. Value names matter to
 * completion: `<dir>` completes directories, `<file>` completes files, `choices()` its choices.
 * An action writes to `tools.terminal.out`, as JSON when `tools.terminal.json` is set, and throws
 * what goes wrong: `UsageError` (exit code 2) or `Refusal` (exit code 1) of `@millrace/kit/errors`.
 * A server runs inside `tools.lifecycle.serve()`.
 */
export const registry: readonly GroupEntry[] = [
  {
    name: 'up',
    summary: 'Start everything on this machine',
    load: () => import('./commands/up.js'),
  },
  {
    name: 'status',
    summary: 'Show the status of all servers and their work',
    load: () => import('./commands/status.js'),
  },
  {
    name: 'logs',
    summary: 'Show the logs of the servers',
    load: () => import('./commands/logs.js'),
  },
  {
    name: 'restart',
    summary: 'Restart the servers one after the other',
    load: () => import('./commands/restart.js'),
  },
  {
    name: 'down',
    summary: 'Stop everything that runs on this machine',
    load: () => import('./commands/down.js'),
  },
  {
    name: 'service',
    summary: 'Run the servers as a service of your user',
    load: () => import('./commands/service.js'),
  },
  {
    name: 'version',
    summary: 'Show the versions of the command line and of the running servers',
    load: () => import('./commands/version.js'),
  },
  {
    name: 'open',
    summary: 'Open the dashboard in your browser, logged in',
    load: () => import('./commands/open.js'),
  },
  {
    name: 'tui',
    summary: 'Open the terminal dashboard',
    load: () => import('./commands/tui.js'),
  },
  {
    name: 'db',
    summary: 'Run the database, and read and write records',
    load: () => import('./commands/db.js'),
  },
  {
    name: 'queue',
    summary: 'Run the queue, and manage its queues and tasks',
    load: () => import('./commands/queue.js'),
  },
  {
    name: 'connect',
    summary: 'Turn changes of the database into tasks of the queue',
    load: () => import('./commands/connect.js'),
  },
  {
    name: 'daemon',
    summary: 'Run the agent daemon and manage its token',
    load: () => import('./commands/daemon.js'),
  },
  {
    name: 'agent',
    summary: 'Start coding agents and manage them',
    load: () => import('./commands/agent.js'),
  },
  {
    name: 'pipeline',
    summary: 'Run agents one after another',
    load: () => import('./commands/pipeline.js'),
  },
  {
    name: 'inbox',
    summary: 'Show notifications of the daemon',
    load: () => import('./commands/inbox.js'),
  },
  {
    name: 'backend',
    summary: 'Show and change the coding-agent backends',
    load: () => import('./commands/backend.js'),
  },
  {
    name: 'usage',
    summary: 'Show how much of each subscription is used',
    load: () => import('./commands/usage.js'),
  },
  {
    name: 'check',
    summary: 'Run a build or tests with short output',
    load: () => import('./commands/check.js'),
  },
  {
    name: 'git',
    summary: 'Run git commit, push or pull with short output',
    load: () => import('./commands/git.js'),
  },
  {
    name: 'cost',
    summary: 'Show spend and savings of the agents',
    load: () => import('./commands/cost.js'),
  },
  {
    name: 'inspect',
    summary: 'Show the resources that the machine and the agents use',
    load: () => import('./commands/inspect.js'),
  },
  {
    name: 'workspace',
    summary: 'Show the branches of the agents',
    load: () => import('./commands/workspace.js'),
  },
  {
    name: 'config',
    summary: 'Show and change the settings of the daemon',
    load: () => import('./commands/config.js'),
  },
  {
    name: 'mcp',
    summary: 'Serve the daemon to agents over stdin and stdout',
    load: () => import('./commands/mcp.js'),
  },
  {
    name: 'packaging',
    summary: 'Copy units, alerts and manifests for operating Millrace',
    load: () => import('./commands/packaging.js'),
  },
  {
    name: 'doctor',
    summary: 'Check that this machine is ready for Millrace',
    load: () => import('./commands/doctor.js'),
  },
  {
    name: 'demo',
    summary: 'Run an end-to-end demo with a fake agent',
    load: () => import('./commands/demo.js'),
  },
  {
    name: 'completion',
    summary: 'Print the completion script of a shell',
    load: () => import('./commands/completion.js'),
  },
  {
    name: 'help',
    summary: 'Show what a command does, with examples',
    load: () => import('./commands/help.js'),
  },
];
