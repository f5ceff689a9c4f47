import { parseArgs } from 'node:util';

export const peerNames = ['pg-boss', 'graphile-worker'];
/** Defaults, and the minimum for results to be saved. */
const defaults = { rounds: 3, tasks: 40_000, warmUp: 40_000, backlog: 200_000 };
const help = `npm run bench -- queue-postgres [options]

  --rounds N            rounds; the median counts (${defaults.rounds})
  --tasks N             tasks stored and processed per measurement (${defaults.tasks})
  --warm-up N           tasks for each server that are worked off before anything is measured
                        (${defaults.warmUp})
  --backlog N           tasks that wait while some are worked off, beside 10000 (${defaults.backlog});
                        --backlog 1000000 takes a few minutes more in each round
  --loops N             loops in each server of Millrace and pg-boss that claim and complete (what
                        is best for each: 2, and 3 where one server of Millrace is alone)
  --snapshot-minutes N  how long Millrace works under a snapshot that somebody holds before it is
                        measured (0: once before); --snapshot-minutes 10 takes that long in each round
  --peers LIST          some of ${peerNames.join(',')}, or '' for none
  --install             installs what Millrace is compared with, in bench/node_modules, and ends

Results are saved in bench/results unless an option is below its default.`;

/** The options of a run; undefined if only help or an error was printed. */
export function readOptions(args, note) {
  try {
    const options = parse(args);
    if (!options.help) return options;
    note(help);
  } catch (error) {
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
      'snapshot-minutes': { type: 'string', default: '0' },
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
