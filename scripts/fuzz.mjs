/**
 * `npm run fuzz -- --target cron --minutes 10`: feeds mutated inputs to the parsers that read what
 * others send. `npm run fuzz -- --help` lists the options.
 */
import { readFileSync } from 'node:fs';
import { readOptions, refuse } from './options.mjs';
import { prepare, root, say } from './prepare.mjs';

const { values } = readOptions({
  name: 'fuzz',
  about: `Mutates the inputs of fuzz/corpus, guided by the coverage of V8, and fails when a target throws an
error that is not a refusal, takes more than a second of CPU time or too much memory. The input is
then in fuzz/found; put it into the corpus of its target when the defect is fixed.`,
  options: {
    target: { type: 'string', help: 'One target; default: all, one after the other' },
    minutes: { type: 'string', default: '1', help: 'How long each target runs' },
    seed: { type: 'string', default: '', help: 'Seed of the mutations; default: a new one' },
    input: { type: 'string', help: 'Run one file through --target instead' },
    root: { type: 'string', default: root, help: 'Where fuzz/targets and fuzz/corpus are' },
    'no-build': { type: 'boolean', default: false, help: 'Use the build as it is' },
  },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) refuse('fuzz', '--minutes is more than 0.');
if (!values['no-build']) prepare();
const { fuzz, targetNames } = await import('../fuzz/fuzz.mjs');
const names = values.target === undefined ? targetNames(values.root) : [values.target];
for (const name of names) {
  if (!targetNames(values.root).includes(name)) {
    refuse(
      'fuzz',
      `There is no target "${name}". Targets: ${targetNames(values.root).join(', ')}.`,
    );
  }
}
const seed = values.seed === '' ? process.hrtime()[1] : Number(values.seed);
if (!Number.isSafeInteger(seed)) refuse('fuzz', '--seed is a whole number.');
const only = values.input === undefined ? undefined : readFileSync(values.input);
let failed = 0;
for (const name of names) {
  const result = await fuzz({ root: values.root, name, seed, seconds: minutes * 60, only });
  const { runs, kept, seconds } = result;
  const fault = result.fault === undefined ? '' : `: ${result.fault}`;
  say(
    `${fault === '' ? 'ok    ' : 'FAILED'} ${name}: ${runs} inputs in ${seconds.toFixed(0)} s, ` +
      `${kept} kept, seed ${seed}${fault}`,
  );
  if (fault !== '') failed++;
}
process.exitCode = failed > 0 ? 1 : 0;
