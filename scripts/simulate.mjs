/**
 * `npm run simulate -- --seeds 1000`: runs servers in virtual time under faults, one world for each
 * seed, and checks what must hold. `npm run simulate -- --help` lists the options.
 */
import { readOptions, refuse } from './options.mjs';
import { bin, prepare, run, say } from './prepare.mjs';

const queue = {
  folder: 'packages/queue/simulation',
  load: () => import('../packages/queue/simulation/dist/simulation/index.js'),
  stores: ['memory', 'embedded'],
  start: ({ simulateQueue }, seeds, options) => simulateQueue(seeds, options),
};
const flows = {
  ...queue,
  start: ({ simulateFlows }, seeds, options) => simulateFlows(seeds, options),
};
const components = { queue, flows };

const { values } = readOptions({
  name: 'simulate',
  about: `Runs servers in virtual time under faults, one world for each seed, and checks what must hold.`,
  options: {
    component: { type: 'string', default: 'queue', help: 'What to simulate: queue or flows' },
    seeds: { type: 'string', default: '200', help: 'Number of seeds' },
    seed: { type: 'string', help: 'Run this seed alone' },
    first: { type: 'string', default: '1', help: 'The first seed' },
    store: { type: 'string', default: 'memory', help: 'memory, or the real store: embedded' },
    'no-build': { type: 'boolean', default: false, help: 'Use the build as it is' },
  },
});
const component = components[values.component];
const seeds = values.seed === undefined ? Number(values.seeds) : 1;
const first = Number(values.seed ?? values.first);
const { store } = values;
if (!component?.stores.includes(store) || !Number.isInteger(seeds) || seeds < 1 || !isSeed(first)) {
  refuse(
    'simulate',
    'Give a known component and store, at least one seed, and whole numbers as seeds.',
  );
}
if (!values['no-build']) {
  prepare();
  run(process.execPath, [bin('typescript', 'tsc'), '-p', component.folder]);
}

const started = performance.now();
try {
  const report = await component.start(await component.load(), seeds, { first, store });
  const { runs, events, virtualMs, hits, tally } = report;
  const seconds = Number(((performance.now() - started) / 1_000).toFixed(1));
  const virtual_hours = Number((virtualMs / 3_600_000).toFixed(1));
  const faults = Object.fromEntries(hits);
  const { component: name } = values;
  console.log(
    JSON.stringify({
      ok: true,
      component: name,
      runs,
      first,
      store,
      seconds,
      virtual_hours,
      events,
      ...tally,
      faults,
    }),
  );
} catch (error) {
  say(error.stack);
  console.log(JSON.stringify({ ok: false, component: values.component, message: error.message }));
  process.exitCode = 1;
}

function isSeed(number) {
  return Number.isInteger(number) && number >= 0 && number < 2 ** 32;
}
