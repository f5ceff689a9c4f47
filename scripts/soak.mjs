/**
 * `npm run soak -- --minutes 20`: the three servers under mixed load, one of them killed now and
 * then. `npm run soak -- --help` lists the options.
 */
import { readOptions, refuse } from './options.mjs';
import { prepare, root, say } from './prepare.mjs';

const { values } = readOptions({
  name: 'soak',
  about: `Runs the three servers under mixed load and kills one of them now and then. At the end everything
must be accounted for, and memory, file handles and waiting times must not have drifted.`,
  options: {
    minutes: { type: 'string', default: '20', help: 'How long' },
    'fault-every': { type: 'string', default: '180', help: 'Seconds between kills; 0: none' },
    'no-build': { type: 'boolean', default: false, help: 'Use the build as it is' },
  },
});
const minutes = Number(values.minutes);
const faultEveryS = Number(values['fault-every']);
if (!(minutes > 0) || !(faultEveryS >= 0)) {
  refuse('soak', '--minutes is more than 0, --fault-every at least 0.');
}
if (!values['no-build']) prepare();
const { soak } = await import('../soak/soak.mjs');
const { lines, faults } = await soak({ root, minutes, faultEveryS, note: say });
for (const line of lines) console.log(line);
for (const fault of faults) say(`FAILED ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
