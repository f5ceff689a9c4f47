import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';

export const engineNames = ['millrace', 'lmdb', 'sqlite', 'postgres'];
export const phaseNames = ['writes', 'queue', 'large'];

const help = `npm run bench -- engine [options]

  --records N     records in the large database (1000000)
  --quick         a smoke run: 100000 records, short windows, one round
  --rounds N      how often each measure is taken in turn; the median counts (3)
  --window MS     how long each timed window is (1500)
  --engines LIST  some of ${engineNames.join(',')}
  --phases LIST   some of ${phaseNames.join(',')}
  --dir DIR       where the databases go while it runs: the disk to be measured (${tmpdir()})
  --profile DIR   CPU profiles of Millrace's processes
  --install       installs what Millrace is compared with, in bench/node_modules, and ends`;

/** The options of a run, or undefined when there is nothing to run but something to say. */
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
      records: { type: 'string' },
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      window: { type: 'string' },
      engines: { type: 'string', default: engineNames.join(',') },
      phases: { type: 'string', default: phaseNames.join(',') },
      dir: { type: 'string', default: tmpdir() },
      profile: { type: 'string' },
      install: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const { quick } = values;
  return {
    quick,
    records: count('records', values.records, quick ? 100_000 : 1_000_000),
    rounds: count('rounds', values.rounds, quick ? 1 : 3),
    windowMs: count('window', values.window, quick ? 400 : 1_500),
    tasks: quick ? 4_000 : 12_000,
    engines: some('engines', values.engines, engineNames),
    phases: some('phases', values.phases, phaseNames),
    dir: values.dir,
    profile: values.profile,
    install: values.install,
    help: values.help,
  };
}

function count(name, text, otherwise) {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`--${name} takes a whole number from 1 on, not "${text}"`);
}

function some(name, text, known) {
  const chosen = text.split(',');
  const unknown = chosen.find((each) => !known.includes(each));
  if (unknown === undefined) return known.filter((each) => chosen.includes(each));
  throw new Error(`--${name} takes some of ${known.join(',')}; "${unknown}" is none of them`);
}
