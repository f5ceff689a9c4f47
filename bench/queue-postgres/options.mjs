import { parseArgs } from 'node:util';

export const peerNames = ['pg-boss', 'graphile-worker'];
/** Defaults, and the minimum for results to be saved. */
const defaults = {
  rounds: 3,
  tasks: 40_000,
  warmUp: 40_000,
  backlog: 1_000_000,
  snapshotMinutes: 5,
};
const help = `npm run bench -- queue-postgres [options]

  --rounds N            rounds; the median counts (${defaults.rounds})
  --tasks N             tasks stored and processed per measurement (${defaults.tasks})
  --warm-up N           tasks for each server that are worked off before anything is measured
                        (${defaults.warmUp})
  --backlog N           pending tasks while some are worked off, beside 10000 (${defaults.backlog})
  --loops N             loops in each server of Millrace and pg-boss that claim and complete
                        (default: 2, and 3 where one server of Millrace is alone)
  --snapshot-minutes N  minutes that Millrace works under an open snapshot before it is measured
                        (${defaults.snapshotMinutes}; 0: a single run before)
  --peers LIST          some of ${peerNames.join(',')}, or '' for none
  --install             install what Millrace is compared with in bench/node_modules, and exit

The defaults take about half an hour, of which 15 minutes are under snapshots.

Results are saved in bench/results unless an option is below its default.`;

/** The options of a run; undefined if only help or an error was printed. */
export function readOptions(args, note) {
  try {
    const options = parse(args);
    if (!options.help) return options;
    note(help);
  } catch (error) {
    // Unknown options are reported in scripts/bench.mjs.
    if (error.code?.startsWith('ERR_PARSE_ARGS')) throw error;
    note(`${error.message}\n\n${help}`);
    process.exitCode = 2;
  }
  return undefined;
}

function parse(args) {
  const { values } = parseArgs({
    args,
    options: {
      install: { type: 'boolean', default: false },
      rounds: { type: 'string', default: String(defaults.rounds) },
      tasks: { type: 'string', default: String(defaults.tasks) },
      'warm-up': { type: 'string', default: String(defaults.warmUp) },
      backlog: { type: 'string', default: String(defaults.backlog) },
      loops: { type: 'string' },
      'snapshot-minutes': { type: 'string', default: String(defaults.snapshotMinutes) },
      peers: { type: 'string', default: peerNames.join(',') },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const options = {
    help: values.help,
    install: values.install,
    rounds: number('rounds', values.rounds, 1),
    tasks: number('tasks', values.tasks, 1_000),
    warmUp: number('warm-up', values['warm-up'], 0),
    backlog: number('backlog', values.backlog, 20_000),
    loops: values.loops === undefined ? undefined : number('loops', values.loops, 1),
    snapshotMinutes: number('snapshot-minutes', values['snapshot-minutes'], 0),
    peers: values.peers.split(',').filter(Boolean),
  };
  const unknown = options.peers.filter((name) => !peerNames.includes(name));
  if (unknown.length > 0) throw new Error(`No such peer: ${unknown.join(', ')}.`);
  options.isWhole =
    options.peers.length === peerNames.length &&
    Object.keys(defaults).every((key) => options[key] >= defaults[key]);
  return options;
}

function number(name, text, least) {
  const value = Number(text);
  if (!(value >= least)) throw new Error(`--${name} must be a number from ${least} on.`);
  return value;
}
