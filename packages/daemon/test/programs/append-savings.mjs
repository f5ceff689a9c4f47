// A command line that saves: appends so many entries to the ledger, and tells of each when it is
// on disk.
import { SavingsRecorder } from '@millrace/daemon/config';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';

const [dataDir, name, count] = process.argv.slice(2);
const world = { clock: systemClock, random: systemRandom };
const recorder = new SavingsRecorder({ dataDir, keepsSamples: false, ...world });
for (let at = 0; at < Number(count); at++) {
  await recorder.recordShortening({
    feature: at % 2 === 0 ? 'check' : 'git',
    agentId: `${name}-${at}`,
    repo: null,
    rawBytes: 4_000,
    retainedBytes: 400,
    texts: () => Promise.reject(new Error('nobody asked for texts')),
  });
  process.stdout.write(`${name}-${at}\n`);
}
