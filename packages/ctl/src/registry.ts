import type { GroupEntry } from './base/groups.js';

const machine = () => import('./commands/machine.js');
const daemonViews = () => import('./commands/daemon-views.js');
const programs = () => import('./commands/programs.js');

/**
 * The first words of command lines, in the order of `ctl help`.
 *
 * This list is all that is read when `ctl` starts; the file of a word is loaded when the word is
 * used, and exports what is declared for its words as `top`. To add `ctl queue grind`, add to the
 * commands of `queue`:
 *
 *     grind: {
 *       summary: '...', description: '...', options: [['--interval <duration>', '...']],
 *       examples: [['ctl queue grind', '...']],
 *       run: async () => (await import('./grinding.js')).grind,
 *     },
 *
 * `grind` gets the arguments, the flags and the tools. A command that calls one operation and shows
 * its response is declared beside the contract, in `contract/src/lists`, together with the columns
 * of its list. A group that is itself a command has `run` too. Import what is heavy inside `run`, so
 * that `--help` and completion stay quick.
 *
 * The tests walk every command and demand a description and an example; help, `--json` on help,
 * "did you mean" and the completion scripts follow from what is declared. Value names matter to
 * completion: `<dir>` completes directories, `<file>` completes files, `choices` its choices.
 * A handler shows its result with `tools.terminal.show`, and throws what goes wrong: `UsageError`
 * (exit code 2) or `Refusal` (exit code 1) of `@millrace/kit/errors`. A server runs inside
 * `tools.lifecycle.serve()`.
 */
export const registry: readonly GroupEntry[] = [
  entry('up', 'Start everything on this machine', machine),
  entry('status', 'Show the status of all servers and their work', machine),
  entry('logs', 'Show the logs of the servers', machine),
  entry('restart', 'Restart the servers one after the other', machine),
  entry('down', 'Stop everything that runs on this machine', machine),
  entry('service', 'Run the servers as a service of your user', machine),
  entry('version', 'Show the versions of the command line and of the running servers', machine),
  entry('open', 'Open the dashboard in your browser, logged in', machine),
  entry('tui', 'Open the terminal dashboard', machine),
  entry('db', 'Run the database, and read and write records', () => import('./commands/db.js')),
  entry(
    'queue',
    'Run the queue, and manage its queues and tasks',
    () => import('./commands/queue.js'),
  ),
  entry('connect', 'Turn changes of the database into tasks of the queue', machine),
  entry(
    'daemon',
    'Run the agent daemon and manage its token',
    () => import('./commands/daemon.js'),
  ),
  entry('agent', 'Start coding agents and manage them', () => import('./commands/agent.js')),
  entry('pipeline', 'Run agents one after another', () => import('./commands/pipeline.js')),
  entry('inbox', 'Show notifications of the daemon', daemonViews),
  entry(
    'backend',
    'Show and change the coding-agent backends',
    () => import('./commands/backend.js'),
  ),
  entry('usage', 'Show how much of each subscription is used', daemonViews),
  entry('check', 'Run a build or tests with short output', programs),
  entry('git', 'Run git commit, push or pull with short output', programs),
  entry('cost', 'Show spend and savings of the agents', daemonViews),
  entry('inspect', 'Show the resources that the machine and the agents use', daemonViews),
  entry('workspace', 'Show the branches of the agents', () => import('./commands/workspace.js')),
  entry('config', 'Show and change the settings of the daemon', daemonViews),
  entry('mcp', 'Serve the daemon to agents over stdin and stdout', machine),
  entry('packaging', 'Copy units, alerts and manifests for operating Millrace', machine),
  entry('doctor', 'Check that this machine is ready for Millrace', machine),
  entry('demo', 'Run an end-to-end demo with a fake agent', machine),
  entry('completion', 'Print the completion script of a shell', programs),
  entry('help', 'Show what a command does, with examples', programs),
];

function entry(name: string, summary: string, load: GroupEntry['load']): GroupEntry {
  return { name, summary, load };
}
