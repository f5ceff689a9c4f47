/**
 * `npm run soak -- --minutes 20`: the three servers under mixed load, one of them killed now and
 * then. At the end everything must be accounted for, and memory, file handles and waiting times
 * must not have drifted. `--fault-every 180` sets the seconds between kills, 0 kills nothing.
 */
import { parseArgs } from 'node:util';
import { prepare, root, say } from './prepare.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    'fault-every': { type: 'string', default: '180' },
    'no-build': { type: 'boolean', default: false },
  },
});
const minutes = Number(values.minutes);
const faultEveryS = Number(values['fault-every']);
if (!(minutes > 0) || !(faultEveryS >= 0)) {
  say('Use: npm run soak -- [--minutes 20] [--fault-every 180]');
  process.exit(2);
}
if (!values['no-build']) prepare();
const { soak } = await import('../soak/soak.mjs');
const { lines, faults } = await soak({ root, minutes, faultEveryS, note: say });
for (const line of lines) console.log(line);
for (const fault of faults) say(`FAILED ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
